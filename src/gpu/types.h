// SPDX-License-Identifier: Apache-2.0
// What a GPU can tell and take, in SI units. Plain data; no vendor headers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/activity.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/units.h"

namespace gpoeo::gpu {

struct DeviceIdentity {
  unsigned index = 0;      // in the driver's (PCI) order
  std::string uuid;        // "GPU-..."; everything is keyed by this
  std::string name;        // "NVIDIA A100-SXM4-40GB"
  std::string pci_bus_id;  // "00000000:65:00.0"
  bool simulated = false;  // a twin: every line that shows its figures says so
};

// What can be read. One list, used for capabilities, doctor and the report's "not available".
enum class Reading {
  kPowerSamples,   // the driver's own buffer of power samples
  kPowerInstant,   // newest instantaneous power
  kPowerAverage,   // power as the driver averages it (1 s on most cards)
  kEnergyCounter,  // joules since the driver was loaded
  kSmClock,
  kMemoryClock,
  kUtilization,
  kTemperature,
  kEventReasons,
  kCounters,   // SM, tensor, DRAM activity from outside the process (GPM)
  kProcesses,  // which processes compute on it
  kCount,
};
std::string_view to_string(Reading reading);

// What can be set.
enum class Control { kSmClocks, kMemoryClocks, kPowerLimit, kCount };
std::string_view to_string(Control control);

enum class Support {
  kYes,
  kNo,            // the device, the driver or its version cannot
  kNoPermission,  // it could, but not for this user
  kUnknown,       // not known before it is tried (rights of setters, mostly)
};
std::string_view to_string(Support support);

// Bounds of a lock. Clocks are locked as an upper bound {lowest supported, f}, so that idle gaps
// still clock down.
struct ClockRange {
  Hertz min;
  Hertz max;
  bool operator==(const ClockRange&) const = default;
};

// The SM clocks that go with one memory clock, ascending.
struct MemoryClockEntry {
  Hertz memory;
  std::vector<Hertz> sm;
};

struct PowerLimits {
  Watts min;
  Watts max;
  Watts standard;  // the card's default limit
};

struct Capabilities {
  Support readings[static_cast<int>(Reading::kCount)] = {};
  Support controls[static_cast<int>(Control::kCount)] = {};
  std::vector<MemoryClockEntry> clocks;  // descending memory clock; empty when the driver hides it
  std::optional<PowerLimits> power_limits;

  Support operator[](Reading r) const { return readings[static_cast<int>(r)]; }
  Support operator[](Control c) const { return controls[static_cast<int>(c)]; }
  Support& operator[](Reading r) { return readings[static_cast<int>(r)]; }
  Support& operator[](Control c) { return controls[static_cast<int>(c)]; }
  // SM clocks at the highest memory clock, ascending; empty when unknown.
  const std::vector<Hertz>& sm_clocks() const;
};

struct PowerSample {
  Instant time;
  Watts power;
};

struct Utilization {
  double gpu = 0;     // 0..1, share of the driver's window in which a kernel ran
  double memory = 0;  // 0..1, share in which device memory was read or written
};

// Why the clock is where it is: NVML's bit numbers (nvmlClocksEventReasons), which every tool
// shows.
struct EventReasons {
  std::uint64_t bits = 0;
  static constexpr std::uint64_t kGpuIdle = 1ULL << 0;
  static constexpr std::uint64_t kApplicationsClocks = 1ULL << 1;
  static constexpr std::uint64_t kSwPowerCap = 1ULL << 2;
  static constexpr std::uint64_t kHwSlowdown = 1ULL << 3;
  static constexpr std::uint64_t kSyncBoost = 1ULL << 4;
  static constexpr std::uint64_t kSwThermal = 1ULL << 5;
  static constexpr std::uint64_t kHwThermal = 1ULL << 6;
  static constexpr std::uint64_t kHwPowerBrake = 1ULL << 7;
  static constexpr std::uint64_t kDisplayClocks = 1ULL << 8;
  bool has(std::uint64_t reason) const { return (bits & reason) != 0; }
};
// "power cap, idle"; "none" for no bit.
std::string to_string(EventReasons reasons);

// Activities over one counter window.
struct Counters : Activity {
  Seconds window;
};

struct ComputeProcess {
  std::int64_t pid = 0;
  std::optional<std::uint64_t> memory_bytes;
};

}  // namespace gpoeo::gpu
