// SPDX-License-Identifier: Apache-2.0
#include "response/monotone_cubic.h"

#include <algorithm>
#include <cmath>

#include "base/result.h"

namespace gpoeo::response {
namespace {

// The three-point end formula, held to the sign of its own interval and at most three times its
// secant, so that the end interval stays monotone.
double end_slope(double h0, double h1, double secant0, double secant1) {
  const double slope = ((2 * h0 + h1) * secant0 - h0 * secant1) / (h0 + h1);
  if (slope * secant0 <= 0) return 0;
  if (std::abs(slope) > 3 * std::abs(secant0)) return 3 * secant0;
  return slope;
}

}  // namespace

MonotoneCubic::MonotoneCubic(std::vector<double> x, std::vector<double> y)
    : x_(std::move(x)), y_(std::move(y)), slope_(x_.size(), 0.0) {
  GPOEO_CHECK(!x_.empty() && x_.size() == y_.size());
  const std::size_t n = x_.size();
  if (n == 1) return;
  std::vector<double> h(n - 1);
  std::vector<double> secant(n - 1);
  for (std::size_t i = 0; i + 1 < n; ++i) {
    h[i] = x_[i + 1] - x_[i];
    GPOEO_CHECK(h[i] > 0);
    secant[i] = (y_[i + 1] - y_[i]) / h[i];
  }
  if (n == 2) {
    slope_.assign(2, secant[0]);
    return;
  }
  for (std::size_t i = 1; i + 1 < n; ++i) {
    if (secant[i - 1] * secant[i] <= 0) continue;  // an extremum or a plateau: flat
    // The weighted harmonic mean of the secants lies inside Fritsch and Carlson's region of
    // monotonicity (Fritsch and Butland, SIAM J. Sci. Stat. Comput. 5, 1984).
    const double w0 = 2 * h[i] + h[i - 1];
    const double w1 = h[i] + 2 * h[i - 1];
    slope_[i] = (w0 + w1) / (w0 / secant[i - 1] + w1 / secant[i]);
  }
  slope_[0] = end_slope(h[0], h[1], secant[0], secant[1]);
  slope_[n - 1] = end_slope(h[n - 2], h[n - 3], secant[n - 2], secant[n - 3]);
}

double MonotoneCubic::operator()(double x) const {
  if (!(x > x_.front())) return y_.front();
  if (x >= x_.back()) return y_.back();
  const auto right = static_cast<std::size_t>(std::ranges::upper_bound(x_, x) - x_.begin());
  const std::size_t i = right - 1;
  if (x == x_[i]) return y_[i];
  const double h = x_[right] - x_[i];
  const double t = (x - x_[i]) / h;
  const double u = 1 - t;
  // Cubic Hermite basis.
  const double value = y_[i] * u * u * (1 + 2 * t) + y_[right] * t * t * (3 - 2 * t) +
                       h * (slope_[i] * t * u * u - slope_[right] * t * t * u);
  // Rounding alone could leave the interval by an ulp.
  const auto [low, high] = std::minmax(y_[i], y_[right]);
  return std::clamp(value, low, high);
}

}  // namespace gpoeo::response
