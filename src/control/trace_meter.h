// SPDX-License-Identifier: Apache-2.0
// Stands in for counted iterations where there are none: whether the job works is told by the
// utilisation, and how long an iteration takes by its power trace against one at default clocks
// (trace_window.h).
#pragma once

#include <optional>

#include "base/clock.h"
#include "control/gpu_group.h"
#include "control/trace_window.h"

namespace gpoeo::control {

// Thread rule: the control thread.
class TraceMeter {
 public:
  // Takes over when the GPUs were busy for `after` without an iteration; nullopt: never. `gpus`
  // must outlive it.
  TraceMeter(GpuGroup gpus, std::optional<Duration> after, Instant now);

  enum class Event {
    kNothing,
    kTakesOver,  // from here on traces are compared
    kIdle,       // the GPU does nothing any more
    kBusyAgain,
  };
  // To be called while no iteration was ever counted.
  Event follow(Instant now);
  bool active() const { return active_; }
  // When the GPU was seen to work last.
  Instant last_busy() const { return last_busy_; }
  // Iterations are counted after all; it does not take over again.
  void stand_down();
  // Busy for long enough that its trace means something.
  bool warm(Instant now) const;

  // Other work begins: its first window at default clocks is the reference for those that follow.
  void new_work(Instant now);
  void open(const policy::MeasureGoal& goal, Instant from) { window_.emplace(goal, from); }
  void drop() { window_.reset(); }
  bool measuring() const { return window_.has_value(); }

  struct Measured {
    Instant from, to;
    policy::Observation observation;  // setting and `at` are the caller's to fill
  };
  // nullopt: measure on. An error: nothing can be said of this trace, or its energy cannot be read.
  std::optional<Result<Measured>> poll(Instant now);

 private:
  std::optional<Result<Measured>> unreadable(Instant now) const;

  GpuGroup gpus_;
  std::optional<Duration> after_;
  bool active_ = false;
  bool idle_ = false;
  Instant busy_since_, last_busy_;
  std::optional<TraceWindow> window_;
  std::optional<iteration::PowerTrace> reference_;
  Seconds reference_period_;
};

}  // namespace gpoeo::control
