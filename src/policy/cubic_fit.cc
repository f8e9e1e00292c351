// SPDX-License-Identifier: Apache-2.0
#include "policy/cubic_fit.h"

#include <Eigen/Dense>

#include <algorithm>

namespace gpoeo::policy {

CubicFit::CubicFit(std::span<const double> x, std::span<const double> y) {
  const auto [low, high] = std::ranges::minmax_element(x);
  centre_ = (*low + *high) / 2;
  scale_ = std::max((*high - *low) / 2, 1e-9);
  const auto n = static_cast<Eigen::Index>(x.size());
  // Through up to four points exactly, as published.
  const Eigen::Index terms = std::min<Eigen::Index>(4, n);
  Eigen::MatrixXd powers(n, terms);
  Eigen::VectorXd values(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const double u = (x[static_cast<std::size_t>(i)] - centre_) / scale_;
    double power = 1;
    for (Eigen::Index j = 0; j < terms; ++j, power *= u) powers(i, j) = power;
    values(i) = y[static_cast<std::size_t>(i)];
  }
  const Eigen::VectorXd c = powers.colPivHouseholderQr().solve(values);
  coefficients_.assign(c.data(), c.data() + c.size());
}

double CubicFit::at(double x) const {
  const double u = (x - centre_) / scale_;
  double value = 0;
  for (auto c = coefficients_.rbegin(); c != coefficients_.rend(); ++c) value = value * u + *c;
  return value;
}

}  // namespace gpoeo::policy
