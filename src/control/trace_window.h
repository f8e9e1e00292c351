// SPDX-License-Identifier: Apache-2.0
// One measurement where no iteration can be counted: how much longer an iteration takes than in a
// reference window, from the two power traces (iteration/slowdown.h). Pure.
//
// The reference is a window at default clocks; it is accepted when its two halves can be compared
// with one another, so that there is a rhythm at all.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "iteration/series.h"
#include "policy/policy.h"
#include "telemetry/history.h"

namespace gpoeo::control {

class TraceWindow {
 public:
  // Power before `from` does not count. `from` is when the card had settled.
  TraceWindow(const policy::MeasureGoal& goal, Instant from);

  struct Timing {
    Instant from, to;
    double time_ratio = 1;  // over the reference's
    double error = 0;       // its standard error
  };
  // What is known by now. nullopt: measure on. An error: its time is up and nothing can be said.
  // `reference` null: this window is to become it.
  std::optional<Result<Timing>> look(const telemetry::History& history, Instant now,
                                     const iteration::PowerTrace* reference);
  // When its time is up at the latest.
  Instant latest_answer() const { return from_ + longest_; }
  // The trace of what was answered last.
  const iteration::PowerTrace& trace() const { return trace_; }

 private:
  policy::MeasureGoal goal_;
  Instant from_, next_look_;
  Duration longest_;
  iteration::PowerTrace trace_;
};

}  // namespace gpoeo::control
