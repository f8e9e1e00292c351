// SPDX-License-Identifier: Apache-2.0
// A power trace as it was sampled, and as the estimators want it: evenly spaced, without outliers,
// start-up and trend.
//
// Thread rule: plain values and pure functions. Errors: Result, kInvalid with the reason.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"

namespace gpoeo::iteration {

// Samples in the order of time. Spacing may vary.
struct PowerTrace {
  std::vector<double> t_s;
  std::vector<double> power_w;
};

struct Series {
  double start_s = 0;
  double step_s = 0;
  std::vector<double> value;  // mean 0; its largest outliers clipped
  double mean_w = 0;          // of the trace, before the mean was taken off
  double duration_s() const { return step_s * static_cast<double>(value.size()); }
};

// The least number of samples from which anything can be said.
inline constexpr std::size_t kLeastSamples = 32;
// Longer traces are read from their end: older samples say little about now.
inline constexpr std::size_t kMostSamples = std::size_t{1} << 14;

// Refuses: fewer than kLeastSamples samples, values that are not finite, time that does not rise,
// holes in more than a fifth of the time, no variation. O(n log n).
Result<Series> make_series(const PowerTrace& trace);

// Linear interpolation of `value` (spaced `step_s` from 0) at `t_s`; the ends hold.
double interpolate(std::span<const double> value, double step_s, double t_s);
// The value below which `share` of the values lie.
double quantile(std::vector<double> values, double share);

}  // namespace gpoeo::iteration
