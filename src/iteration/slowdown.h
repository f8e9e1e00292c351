// SPDX-License-Identifier: Apache-2.0
// How much longer an iteration takes in window B than in window A: from launch counts, or from two
// power traces without knowing the period.
//
// Thread rule: pure functions. Errors: an estimate without a ratio carries the reason.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "iteration/series.h"

namespace gpoeo::iteration {

struct SlowdownEstimate {
  std::optional<double> time_ratio;  // B's time per iteration over A's; null when unknowable
  double low = 0, high = 0;          // 90 % interval
  double confidence = 0;             // 0..1 that the right rhythms were compared at all
  std::string reason;                // why there is no ratio; empty when there is one
};

// Ratios looked for by compare_traces().
inline constexpr double kLeastRatio = 0.75;
inline constexpr double kMostRatio = 1.5;

// From two traces: the scale at which the spectrum of B fits that of A (all harmonics vote, no
// octave is chosen), made exact by counting the turns of each strong line in both windows.
SlowdownEstimate compare_traces(const PowerTrace& a, const PowerTrace& b);

// From the end times of the iterations of two windows, oldest first. Exact: the interval holds only
// the scatter of the iterations themselves. At least 3 ends each.
SlowdownEstimate compare_iteration_ends(std::span<const std::int64_t> a_end_ns,
                                        std::span<const std::int64_t> b_end_ns);

}  // namespace gpoeo::iteration
