// SPDX-License-Identifier: Apache-2.0
#include "response/smooth.h"

#include <algorithm>
#include <cmath>

#include "base/result.h"
#include "response/penalised_fit.h"
#include "response/robust.h"

namespace gpoeo::response {
namespace {

constexpr std::size_t kFewestToSmooth = 6;
constexpr int kMaxRounds = 12;
// An outlier keeps this weight, so that the system stays well conditioned.
constexpr double kOutlierWeight = 1e-3;
// Gaps below this share of the mean gap count as this, for the same reason.
constexpr double kLeastGap = 0.2;
// A knee is where the curve misses a supported point by this many sigmas; it then gets softer by
// this factor each round, down to where it may as well break.
constexpr double kKneeSigmas = 3;
constexpr double kKneeSoftening = 0.1;
constexpr double kLeastStiffness = 1e-4;

std::vector<double> unit_gaps(std::span<const double> x) {
  const double mean = (x.back() - x.front()) / static_cast<double>(x.size() - 1);
  std::vector<double> gaps(x.size() - 1, 1.0);
  if (!(mean > 0)) return gaps;
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    gaps[i] = std::max(kLeastGap, (x[i + 1] - x[i]) / mean);
  }
  return gaps;
}

// How far each point is from what its surroundings say, whichever of them disowns it more. A curve
// that may only fall also disowns a run of points that stick out above.
std::vector<double> distance_to_surroundings(std::span<const double> y,
                                             std::span<const double> middle, Shape shape) {
  std::vector<double> d(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) d[i] = std::abs(y[i] - middle[i]);
  if (shape == Shape::kFree) return d;
  // Time shoots up at the lowest clock or limit when that throttles; nothing is wrong with it.
  if (y[0] > middle[0]) d[0] = 0;
  const std::vector<double> falling = pool_medians_non_increasing(y);
  for (std::size_t i = 0; i < y.size(); ++i) d[i] = std::max(d[i], std::abs(y[i] - falling[i]));
  return d;
}

std::vector<double> outlier_weights(std::span<const double> distance, double noise) {
  std::vector<double> w(distance.size());
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = biweight(distance[i] / noise, kOutlierWeight);
  return w;
}

// Makes the curve softer about the points that it misses though their surroundings support them.
bool soften_knees(std::span<const double> missed_by, std::span<const double> surroundings,
                  double noise, std::vector<double>& stiffness) {
  bool softened = false;
  const double bound = kKneeSigmas * noise;
  for (std::size_t i = 0; i < stiffness.size(); ++i) {
    if (missed_by[i] <= bound || surroundings[i] > bound) continue;
    const std::size_t first = i == 0 ? 0 : i - 1;
    const std::size_t last = std::min(i + 1, stiffness.size() - 1);
    for (std::size_t j = first; j <= last; ++j) {
      if (stiffness[j] <= kLeastStiffness) continue;
      stiffness[j] = std::max(kLeastStiffness, stiffness[j] * kKneeSoftening);
      softened = true;
    }
  }
  return softened;
}

}  // namespace

Smoothed smooth(std::span<const double> x, std::span<const double> y,
                const SmoothOptions& options) {
  GPOEO_CHECK(!x.empty() && x.size() == y.size() && options.least_noise > 0);
  const std::size_t n = x.size();
  const bool falling = options.shape == Shape::kNonIncreasing;
  if (n < kFewestToSmooth) {
    std::vector<double> weights(n, 1.0);
    std::vector<double> z =
        falling ? pool_non_increasing(y, weights) : std::vector<double>(y.begin(), y.end());
    return {.z = std::move(z), .weights = std::move(weights)};
  }

  const std::vector<double> gaps = unit_gaps(x);
  const std::vector<double> middle = running_median(y);
  const std::vector<double> surroundings = distance_to_surroundings(y, middle, options.shape);
  std::vector<double> stiffness(n, 1.0);

  PenalisedFit fit(y, gaps, options.least_noise);
  Location location;
  for (int round = 0; round < kMaxRounds; ++round) {
    fit.set_stiffness(stiffness);
    fit.choose_lambda();
    const std::vector<double> z = fit.solve();
    const std::vector<double> leverage = fit.leverage();
    std::vector<double> r(n);
    // A point pulls the fit towards itself by its leverage.
    for (std::size_t i = 0; i < n; ++i) {
      r[i] = (y[i] - z[i]) / std::sqrt(std::max(0.05, 1 - leverage[i]));
    }
    location = densest_half(r);
    const double noise = std::max(options.least_noise, location.sigma);
    for (double& v : r) v = std::abs(v - location.middle);

    const bool softened = soften_knees(r, surroundings, noise, stiffness);
    std::vector<double> distance(n);
    for (std::size_t i = 0; i < n; ++i) distance[i] = std::min(r[i], surroundings[i]);
    std::vector<double> w = outlier_weights(distance, noise);
    double change = 0;
    for (std::size_t i = 0; i < n; ++i)
      change = std::max(change, std::abs(w[i] - fit.weights()[i]));
    if (change < 0.01 && !softened) break;
    fit.set_weights(std::move(w));
  }
  return {.z = falling ? pool_non_increasing(fit.solve(), fit.weights()) : fit.solve(),
          .weights = fit.weights(),
          .noise = location.sigma,
          .lambda = fit.lambda()};
}

}  // namespace gpoeo::response
