// SPDX-License-Identifier: Apache-2.0
// Interpolation through given points that never overshoots them: a piecewise cubic with slopes
// limited so that it is monotone wherever the data is (F. N. Fritsch and R. E. Carlson, "Monotone
// Piecewise Cubic Interpolation", SIAM J. Numer. Anal. 17, 1980). Passes exactly through every
// point; outside the range it keeps the end's value.
// Thread rule: immutable once made.
#pragma once

#include <vector>

namespace gpoeo::response {

class MonotoneCubic {
 public:
  // `x` strictly ascending, as many `y`, at least one; all finite.
  MonotoneCubic(std::vector<double> x, std::vector<double> y);

  double operator()(double x) const;
  const std::vector<double>& x() const { return x_; }
  const std::vector<double>& y() const { return y_; }

 private:
  std::vector<double> x_, y_, slope_;
};

}  // namespace gpoeo::response
