// SPDX-License-Identifier: Apache-2.0
// A simulated card's fixed properties as plain old data, so that the same bytes work on the heap
// and in a segment that several processes map. Made from a TOML file by device_spec.h; never
// edited afterwards. Raw numbers carry their unit in the name because this is a memory layout.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "gpu/types.h"

namespace gpoeo::twin {

inline constexpr int kMaxSmClocks = 256;
inline constexpr int kMaxMemoryClocks = 6;
// A device's SM clocks times its memory clocks.
inline constexpr int kMaxClockPairs = 1024;

// The activities of gpu::Counters in the order in which the twin integrates them.
enum class Activity : int {
  kGrActive,
  kSmActive,
  kSmOccupancy,
  kTensorActive,
  kDramActive,
  kFp64Active,
  kFp32Active,
  kFp16Active,
  kPcieTxBytesPerS,
  kPcieRxBytesPerS,
  kCount,
};
inline constexpr int kActivityCount = static_cast<int>(Activity::kCount);

// How one periodic sensor behaves: a new value each `period_ns` (plus up to `jitter_us`, drawn
// evenly), the mean of the true power (or activity) over the last `window_ns`; the newest
// `capacity` values are kept. A window of one period or more is a whole number of periods, at most
// kMaxWindowPeriods.
inline constexpr int kMaxWindowPeriods = 63;
struct SensorTiming {
  std::int64_t period_ns;
  std::int64_t window_ns;
  std::int32_t capacity;
  std::int32_t jitter_us;
};

struct DeviceModel {
  // Identity.
  std::array<char, 64> name;            // "NVIDIA A100-SXM4-80GB"
  std::array<char, 32> key;             // the file's short name, "a100"
  std::array<char, 32> driver_version;  // "580.159.04"
  std::uint64_t memory_bytes;
  std::int32_t cuda_major, cuda_minor;
  std::int32_t sm_count, cores;
  std::int32_t memory_bus_bits;
  std::int32_t architecture;    // NVML's number: Maxwell 2, Volta 5, Ampere 7, Hopper 9
  std::uint32_t pci_device_id;  // device << 16 | vendor
  std::int32_t brand;           // NVML's number

  // Clocks. SM clocks ascending; memory clocks descending; a memory clock goes with the SM clocks
  // sm_first[m] .. sm_first[m] + sm_number[m] - 1. Pair index: memory * sm_clock_count + sm.
  std::int32_t sm_clock_count, memory_clock_count;
  std::array<std::int32_t, kMaxSmClocks> sm_mhz;
  std::array<std::int32_t, kMaxMemoryClocks> memory_mhz;
  std::array<std::int32_t, kMaxMemoryClocks> sm_first, sm_number;
  std::int32_t default_sm;  // index of the boost clock a loaded card runs at when nothing binds
  std::int32_t idle_sm, idle_memory;  // indices of the clocks it falls to when idle
  std::int64_t idle_delay_ns;

  // Power, analytic part (DESIGN section 5; formulas in compile.cc).
  double voltage_floor_v, voltage_max_v, voltage_floor_mhz;
  double idle_w;  // at the idle SM clock and the highest memory clock, settled
  // Taken off `idle_w` at each memory clock: memory clocked lower idles lower.
  std::array<double, kMaxMemoryClocks> memory_idle_saving_w;
  double active_w;          // above idle with SM clocks up and nothing running, at default clock
  double sm_dynamic_w;      // all SMs busy at default clock and voltage, above that
  double memory_dynamic_w;  // memory at its peak rate at the highest memory clock
  double bandwidth_bytes_per_s;
  double leakage_w_per_k;

  // Cap.
  double limit_min_w, limit_max_w, limit_default_w;
  // Over 0: a card that replays a table of power limits, at which the driver chose the clocks. SM
  // "clock" number i then stands for whatever it ran at under limit_min_w + i * limit_step_w, a
  // limit selects it, and nothing is governed.
  double limit_step_w;
  std::int64_t governor_period_ns;
  double governor_filter_s;  // time constant of the power the governor looks at
  double governor_margin_w;  // clocks go up again below limit - margin

  // Thermal.
  double ambient_c, thermal_k_per_w, thermal_tau_s;
  double slowdown_c, shutdown_c;

  // Setting clocks: in force after latency, and the clock moves there in settle_ns.
  std::int64_t clock_latency_ns, clock_settle_ns;

  // Sensors.
  SensorTiming power_samples, power_instant, power_average, utilization;
  std::int64_t energy_tick_ns;
  std::int64_t gpm_period_ns;
  double power_noise_cv;     // white, each sample
  double power_drift_sigma;  // AR(1), relative
  double power_drift_tau_s;
  double power_gain;  // 1: no calibration error

  // gpu::Support of each reading and control.
  std::array<std::uint8_t, static_cast<int>(gpu::Reading::kCount)> readings;
  std::array<std::uint8_t, static_cast<int>(gpu::Control::kCount)> controls;
  // Activities that the GPM-style counters have.
  std::array<std::uint8_t, kActivityCount> activities;

  gpu::Support support(gpu::Reading r) const {
    return static_cast<gpu::Support>(readings[static_cast<std::size_t>(r)]);
  }
  gpu::Support support(gpu::Control c) const {
    return static_cast<gpu::Support>(controls[static_cast<std::size_t>(c)]);
  }
  int pair(int memory, int sm) const { return memory * sm_clock_count + sm; }
  int pair_count() const { return memory_clock_count * sm_clock_count; }
};
static_assert(std::is_trivially_copyable_v<DeviceModel>);

}  // namespace gpoeo::twin
