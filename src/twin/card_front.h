// SPDX-License-Identifier: Apache-2.0
// One simulated card as its users may see it: everything NVML can read or set, through the sensor
// model. The truth is not here (judge.h has it). TwinDevice and the twin's libnvidia-ml.so.1 are
// both thin layers over this.
//
// Errors are those of the real library: kNotSupported (this model has no such thing), kNoPermission
// (the device file denies it), kInvalid (argument), kNotFound (no sample in the buffer yet),
// kDeviceLost, and whatever a test injected.
#pragma once

#include <optional>
#include <vector>

#include "gpu/types.h"
#include "twin/card_store.h"

namespace gpoeo::twin {

// A value of a sample buffer with its time.
struct UtilizationSample {
  Instant time;
  double share;  // 0..1
};

// Integrals of the activities since the card came up, as of the counters' last tick. Two of them
// make a GPM metric: (b.seconds[i] - a.seconds[i]) / (b.time - a.time). A PCIe "activity" is bytes.
struct GpmSnapshot {
  Instant time;
  double integral[kActivityCount];
  bool present[kActivityCount];
};

struct Locks {
  std::optional<gpu::ClockRange> sm, memory;
  Watts power_limit;  // what was set last, or the default
  Watts default_power_limit;
};

struct MemoryUse {
  std::uint64_t total_bytes, used_bytes, reserved_bytes;
};

// Value type; borrows the store. Thread rule of the store.
class CardFront {
 public:
  CardFront(CardStore& store, unsigned card) : store_(&store), card_(card) {}

  unsigned index() const { return card_; }
  const DeviceModel& device() const { return store_->device(card_); }
  const CardName& name() const { return store_->name(card_); }

  // Newer than `since`, oldest first; empty when there is none newer (NVML says NOT_FOUND then).
  Result<std::vector<gpu::PowerSample>> power_samples_since(Instant since) const;
  Result<std::vector<UtilizationSample>> gpu_utilization_samples_since(Instant since) const;
  Result<std::vector<UtilizationSample>> memory_utilization_samples_since(Instant since) const;
  Result<Watts> power_instant() const;
  Result<Watts> power_average() const;
  // Counts from the card's creation, as after a driver load.
  Result<Joules> energy_counter() const;
  Result<Hertz> sm_clock() const;
  Result<Hertz> memory_clock() const;
  Result<gpu::Utilization> utilization() const;
  Result<Celsius> temperature() const;
  Result<gpu::EventReasons> event_reasons() const;
  // kNotSupported on devices without counters.
  Result<GpmSnapshot> gpm_snapshot() const;
  // What a profiler inside a job's process would count, on any device: up to now, all activities.
  Result<GpmSnapshot> counters_in_process() const;
  Result<std::vector<gpu::ComputeProcess>> compute_processes() const;
  Result<MemoryUse> memory_use() const;
  // The limit in force.
  Result<Watts> power_limit() const;
  // What is locked now.
  Result<Locks> read_locks() const;

  // A range that is not in order, or whose upper end is below the lowest or lower end above the
  // highest clock, is kInvalid; others are rounded into the table as the driver does: min up, max
  // down, to supported clocks.
  Status lock_sm_clocks(gpu::ClockRange range) const;
  Status reset_sm_clocks() const;
  Status lock_memory_clocks(gpu::ClockRange range) const;
  Status reset_memory_clocks() const;
  // kInvalid outside the device's limits.
  Status set_power_limit(Watts limit) const;

  // For tests of whoever writes: the n-th (1 = next) setter call from now, by any process, fails
  // with `kind` and changes nothing; n = 0 takes it back.
  Status inject_write_failure(int nth, ErrorKind kind) const;
  // Everything answers kDeviceLost until taken back.
  Status set_lost(bool lost) const;

 private:
  CardStore* store_;
  unsigned card_;
};

}  // namespace gpoeo::twin
