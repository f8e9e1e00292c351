// SPDX-License-Identifier: Apache-2.0
#include "response/banded.h"

#include <cmath>

#include "base/result.h"

namespace gpoeo::response {

BandedFactor::BandedFactor(const BandedMatrix& a)
    : d_(a.diagonal), l1_(d_.size(), 0.0), l2_(d_.size(), 0.0) {
  const std::size_t n = d_.size();
  for (std::size_t i = 0; i < n; ++i) {
    if (i >= 1) d_[i] -= d_[i - 1] * l1_[i - 1] * l1_[i - 1];
    if (i >= 2) d_[i] -= d_[i - 2] * l2_[i - 2] * l2_[i - 2];
    GPOEO_CHECK(d_[i] > 0);
    if (i + 1 < n) {
      double off = a.first[i];
      if (i >= 1) off -= d_[i - 1] * l1_[i - 1] * l2_[i - 1];
      l1_[i] = off / d_[i];
    }
    if (i + 2 < n) l2_[i] = a.second[i] / d_[i];
  }
}

std::vector<double> BandedFactor::solve(std::span<const double> b) const {
  const std::size_t n = d_.size();
  GPOEO_CHECK(b.size() == n);
  std::vector<double> z(b.begin(), b.end());
  for (std::size_t i = 0; i < n; ++i) {
    if (i >= 1) z[i] -= l1_[i - 1] * z[i - 1];
    if (i >= 2) z[i] -= l2_[i - 2] * z[i - 2];
  }
  for (std::size_t i = n; i-- > 0;) {
    z[i] /= d_[i];
    if (i + 1 < n) z[i] -= l1_[i] * z[i + 1];
    if (i + 2 < n) z[i] -= l2_[i] * z[i + 2];
  }
  return z;
}

double BandedFactor::log_determinant() const {
  double sum = 0;
  for (const double d : d_) sum += std::log(d);
  return sum;
}

std::vector<double> BandedFactor::inverse_diagonal() const {
  const std::size_t n = d_.size();
  std::vector<double> s(n, 0.0);
  double next = 0;  // inverse at (i+1, i+2)
  for (std::size_t i = n; i-- > 0;) {
    const double s11 = i + 1 < n ? s[i + 1] : 0;
    const double s22 = i + 2 < n ? s[i + 2] : 0;
    const double s01 = -l1_[i] * s11 - l2_[i] * next;
    const double s02 = -l1_[i] * next - l2_[i] * s22;
    s[i] = 1 / d_[i] - l1_[i] * s01 - l2_[i] * s02;
    next = s01;
  }
  return s;
}

}  // namespace gpoeo::response
