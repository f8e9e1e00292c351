// SPDX-License-Identifier: Apache-2.0
// The port: one GPU as the rest of the program sees it. NVML, the twin on virtual time and the
// test decorators implement it.
//
// Every reading is a value, kNotSupported (this card or driver never will), or another error (it
// failed this time); one that is unsupported takes nothing else with it. Setting is a separate
// interface that a device opened read-only does not have at all, so measuring code cannot reach it.
//
// Thread rule: one thread calls a Device and its Controls. Calls may block for as long as the
// driver does; whoever must not block keeps the device on a thread of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gpu/types.h"

namespace gpoeo::gpu {

class Controls {
 public:
  virtual ~Controls() = default;

  // `range` must lie on supported clocks (kInvalid otherwise, naming the nearest two).
  virtual Status lock_sm_clocks(ClockRange range) = 0;
  virtual Status reset_sm_clocks() = 0;
  virtual Status lock_memory_clocks(ClockRange range) = 0;
  virtual Status reset_memory_clocks() = 0;
  virtual Status set_power_limit(Watts limit) = 0;
  // Back to the card's default limit.
  virtual Status reset_power_limit() = 0;

  // The lock in force, nullopt for none. NVML has no getter for locked clocks, so on a real card
  // this is kNotSupported and the guard restores the driver's default; the twin can tell.
  virtual Result<std::optional<ClockRange>> sm_clock_lock() = 0;
  virtual Result<std::optional<ClockRange>> memory_clock_lock() = 0;
  // The limit as it was last set, which is not always the one that binds (Device::power_limit).
  virtual Result<Watts> power_limit_setting() {
    return make_error(ErrorKind::kNotSupported, "this device cannot tell its power limit setting");
  }
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceIdentity& identity() const = 0;
  // Found out once, at opening.
  virtual const Capabilities& capabilities() const = 0;

  // Samples newer than `since`, oldest first; empty when there is none yet. The driver keeps only
  // the last couple of seconds (2.4 s on an H200): ask often enough.
  virtual Result<std::vector<PowerSample>> power_samples_since(Instant since) = 0;
  virtual Result<Watts> power_instant() = 0;
  virtual Result<Watts> power_average() = 0;
  // Moves in ticks (100 ms on an H200); costs up to 5 ms a call there.
  virtual Result<Joules> energy_counter() = 0;
  virtual Result<Hertz> sm_clock() = 0;
  virtual Result<Hertz> memory_clock() = 0;
  virtual Result<Utilization> utilization() = 0;
  virtual Result<Celsius> temperature() = 0;
  virtual Result<EventReasons> event_reasons() = 0;
  // Activities since the previous call, over at least one whole period of the counters; kBusy when
  // no whole period has passed yet (also on the first call, which only starts the window).
  virtual Result<Counters> counters() = 0;
  virtual Result<std::vector<ComputeProcess>> compute_processes() = 0;
  // The enforced limit: the lowest of all that bind.
  virtual Result<Watts> power_limit() = 0;

  // nullptr when the device was opened read-only.
  virtual Controls* controls() = 0;
};

enum class Access { kReadOnly, kControl };

// All GPUs that one driver library shows.
class Driver {
 public:
  virtual ~Driver() = default;
  virtual std::string version() const = 0;
  virtual unsigned device_count() const = 0;
  virtual Result<std::unique_ptr<Device>> open(unsigned index, Access access) = 0;
};

}  // namespace gpoeo::gpu
