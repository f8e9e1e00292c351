// SPDX-License-Identifier: Apache-2.0
// A cubic polynomial through points by least squares; of a lower degree through
// fewer than four, so that it is never under-determined. Pure.
#pragma once

#include <span>
#include <vector>

namespace gpoeo::policy {

class CubicFit {
 public:
  // As many `y` as `x`, at least one; distinct `x`.
  CubicFit(std::span<const double> x, std::span<const double> y);
  double at(double x) const;

 private:
  double centre_ = 0, scale_ = 1;
  std::vector<double> coefficients_;  // of powers of (x - centre) / scale
};

}  // namespace gpoeo::policy
