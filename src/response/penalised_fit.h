// SPDX-License-Identifier: Apache-2.0
// Whittaker smoothing on an uneven axis with given weights; the linear part of smooth.h.
//
//   minimise  sum_i w_i (y_i - z_i)^2 + lambda sum_j s_j h_j (D2 z)_j^2
//
// (D2 z)_j is the second divided difference at the inner point j, h_j the mean of its two gaps, so
// the sum is the discrete form of the integral of the squared second derivative; s_j, 1 for an even
// stiffness, lets the curve bend at j. (P. H. C. Eilers, "A Perfect Smoother", Anal. Chem. 75,
// 2003, with divided differences for uneven spacing.) Thread rule: one object, one thread.
#pragma once

#include <span>
#include <vector>

#include "response/banded.h"

namespace gpoeo::response {

class PenalisedFit {
 public:
  // `steps`: the gaps of the axis, in units of their mean. `least_noise` as in SmoothOptions.
  // At least 3 points. All weights and stiffnesses start at 1.
  PenalisedFit(std::span<const double> y, std::span<const double> steps, double least_noise);

  void set_weights(std::vector<double> w) { w_ = std::move(w); }  // positive
  void set_stiffness(std::span<const double> s);                  // a value a point; ends unused
  // Sets lambda by restricted maximum likelihood, the noise profiled out (G. Wahba, Ann. Stat. 13,
  // 1985, calls it GML; S. N. Wood, J. R. Stat. Soc. B 73, 2011), over quarter decades.
  void choose_lambda();

  const std::vector<double>& weights() const { return w_; }
  double lambda() const { return lambda_; }
  std::vector<double> solve() const;
  // The share of each fitted value that is its own point's, 0..1.
  std::vector<double> leverage() const;

 private:
  BandedMatrix system(double lambda) const;
  std::vector<double> right_side() const;
  double restricted_likelihood(double lambda) const;

  double level_ = 0;
  std::vector<double> y_;  // less level_
  std::vector<double> steps_;
  std::vector<double> w_;
  BandedMatrix roughness_;
  double least_noise_;
  double lambda_ = 1;
};

}  // namespace gpoeo::response
