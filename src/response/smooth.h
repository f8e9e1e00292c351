// SPDX-License-Identifier: Apache-2.0
// Smoothing of one noisy sequence over a non-uniform axis: penalised least squares with robust
// weights and, on request, a monotone result. Method and sources: docs/response-tables.md.
//
//   minimise  sum_i w_i (y_i - z_i)^2 + lambda sum_j h_j (second divided difference of z at j)^2
//
// - lambda: restricted maximum likelihood, so the data says how smooth it is.
// - w: outliers get less weight (Tukey's biweight), points on a step do not.
// - monotone: an asymmetric penalty on rises, then pooled adjacent violators for what is left.
// - fewer than 6 points are not smoothed, only made monotone.
// Cost: O(n) for each of some hundred solves. Thread rule: pure.
#pragma once

#include <span>
#include <vector>

namespace gpoeo::response {

enum class Shape { kFree, kNonIncreasing };

struct SmoothOptions {
  Shape shape = Shape::kFree;
  // Noise below this (in units of y) is not told from rounding: keeps exact data exact.
  double least_noise = 1e-5;
};

struct Smoothed {
  std::vector<double> z;        // one for each point
  std::vector<double> weights;  // 1 = full, towards 0 = taken for an outlier
  double noise = 0;             // estimated standard deviation of y about z
  double lambda = 0;            // in units of the mean spacing; 0 when not smoothed
};

// `x` strictly ascending, `y` as long, all finite; any length up from 1.
Smoothed smooth(std::span<const double> x, std::span<const double> y,
                const SmoothOptions& options = {});

// Weighted least squares under z non-increasing (pool adjacent violators; Ayer et al., Ann. Math.
// Stat. 26, 1955). `weights` positive.
std::vector<double> pool_non_increasing(std::span<const double> y, std::span<const double> weights);

}  // namespace gpoeo::response
