// SPDX-License-Identifier: Apache-2.0
// The period of a job from its power trace, with a confidence that means something: among answers
// with confidence c about c are right (within 1 % of the mean iteration or micro-step time), which
// bench/iteration_bench checks. docs/iterations.md tells how, and what 20 ms samples cannot
// resolve.
//
// Thread rule: estimate_period is pure; a PeriodStream is used by one thread at a time.
// Errors: an estimate without a period carries the reason; nothing fails.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "iteration/series.h"

namespace gpoeo::iteration {

struct PeriodLevel {
  double period_s = 0;
  double iterations = 0;  // in the trace, not rounded
  double strength = 0;    // share of the variance that repeats with it, 0..1
};

struct PeriodEstimate {
  std::optional<double> period_s;  // null when there is none to trust
  double confidence = 0;           // 0..1, of `period_s`, or of the best guess when that is null
  std::vector<PeriodLevel>
      levels;          // shortest first: micro-step, step; the chosen one is among them
  std::string reason;  // why there is no period; empty when there is one
};

// A period shorter than this many samples may as well be the alias of a shorter one.
inline constexpr double kLeastSamplesPerPeriod = 4;

PeriodEstimate estimate_period(const PowerTrace& trace);
PeriodEstimate estimate_period(const Series& series);

// The same, sample by sample, over the newest `window_s` seconds.
class PeriodStream {
 public:
  explicit PeriodStream(double window_s = 25);

  // Amortised O(log n): the estimate is renewed each time an eighth of the window is new. A sample
  // that is not finite or does not come after the one before is dropped.
  void push(double t_s, double power_w);
  // Any time; O(1).
  const PeriodEstimate& estimate() const { return estimate_; }
  // Forgets everything, after a clock change or a shift.
  void reset();

 private:
  double window_s_;
  std::deque<double> t_s_;
  std::deque<double> power_w_;
  std::size_t since_estimate_ = 0;
  PeriodEstimate estimate_;
};

}  // namespace gpoeo::iteration
