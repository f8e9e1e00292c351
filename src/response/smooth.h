// SPDX-License-Identifier: Apache-2.0
// Smooths one measured sequence over an uneven axis, keeping knees and steps and ignoring outliers,
// on request under "never rises". Method, sources and residuals: docs/response-tables.md.
//
// Whittaker smoothing (penalised_fit.h) with lambda by restricted maximum likelihood, repeated with
// - less weight for outliers: what both the curve and the point's own surroundings disown;
// - less stiffness at knees and steps: where the curve misses a point that its surroundings
// support. What still rises at the end is pooled, if asked. Fewer than 6 points are not smoothed,
// only made non-increasing if asked. Cost: O(n) for each of some hundred solves (0.3 ms at 61
// points). Thread rule: pure.
#pragma once

#include <span>
#include <vector>

namespace gpoeo::response {

enum class Shape { kFree, kNonIncreasing };

struct SmoothOptions {
  Shape shape = Shape::kFree;
  // Nothing nearer than some of these (in units of y) is called an outlier or a knee. The default
  // is the best repeatability seen in measured tables, 0.3 %, when y is a logarithm.
  double least_noise = 3e-3;
};

struct Smoothed {
  std::vector<double> z;        // one for each point
  std::vector<double> weights;  // 1 = full, towards 0 = taken for an outlier
  double noise = 0;             // estimated standard deviation of y about z
  double lambda = 0;            // in units of the mean gap; 0 when not smoothed
};

// `x` ascending, `y` as long, all finite; any length up from 1.
Smoothed smooth(std::span<const double> x, std::span<const double> y,
                const SmoothOptions& options = {});

}  // namespace gpoeo::response
