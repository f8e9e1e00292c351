// SPDX-License-Identifier: Apache-2.0
// One measurement: consecutive whole iterations at one setting, until they are enough. Pure.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "control/counted_work.h"
#include "policy/policy.h"

namespace gpoeo::control {

class IterationWindow {
 public:
  // Ends before `from` do not count. `from` is when the card had settled.
  IterationWindow(policy::MeasureGoal goal, Instant from) : goal_(goal), from_(from) {}

  // Ends of consecutive iterations, ascending. A pause (validation, checkpoint, a data stall) would
  // pass for slow iterations: the window starts anew behind it. `breaks`: pauses that those who saw
  // more iterations know of; a window that has just begun cannot tell one.
  void add(std::span<const Instant> ends, std::span<const RunBreak> breaks = {});

  // Enough whole iterations: the goal is met, or its time is up and there are two at least.
  bool ready() const;
  // The first end only opens the window.
  std::span<const Instant> ends() const { return ends_; }
  unsigned pauses() const { return pauses_; }
  // Standard error of the mean iteration time over that mean, from the scatter of single
  // iterations; absent below four iterations.
  std::optional<double> relative_error() const;

 private:
  policy::MeasureGoal goal_;
  Instant from_;
  std::vector<Instant> ends_;
  unsigned pauses_ = 0;
};

}  // namespace gpoeo::control
