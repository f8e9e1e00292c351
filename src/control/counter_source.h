// SPDX-License-Identifier: Apache-2.0
// Where counters come from. One window at a time, of whole iterations, at default clocks.
//
// A source never blocks and never throws a job off: what it cannot do is an error, told in one
// line, and the profiler goes on to the next source.
#pragma once

#include <optional>
#include <span>

#include "base/activity.h"
#include "base/clock.h"
#include "base/result.h"
#include "control/profile.h"

namespace gpoeo::control {

struct CounterReading {
  Activity activity;
  CounterOrigin origin = CounterOrigin::kNone;
  Seconds counted{};      // time that the counters are of
  double iterations = 0;  // in that time
  double remainder = 0;   // largest relative error because they were not whole
};

// Thread rule: the control thread.
class CounterSource {
 public:
  virtual ~CounterSource() = default;

  // Costs the job nothing that could be measured: may run beside a measurement.
  virtual bool free_of_cost() const = 0;
  // Opens a window, at an iteration's end or a little after it.
  virtual Status begin(Instant now, Seconds iteration) = 0;
  // `ends`: of consecutive iterations since then; `enough`: they will do for a source that is free
  // of cost (others say themselves when they are done). nullopt: not finished.
  virtual std::optional<Result<CounterReading>> poll(Instant now, std::span<const Instant> ends,
                                                     bool enough) = 0;
  // Gives up an open window.
  virtual void cancel() = 0;
};

}  // namespace gpoeo::control
