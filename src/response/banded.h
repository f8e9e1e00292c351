// SPDX-License-Identifier: Apache-2.0
// Symmetric positive definite matrices with two bands beside the diagonal: all that smoothing by
// second differences needs, in O(n) where a dense solver takes O(n^3). Inner part of smooth.h.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace gpoeo::response {

struct BandedMatrix {
  explicit BandedMatrix(std::size_t n) : diagonal(n), first(n), second(n) {}

  std::vector<double> diagonal;
  std::vector<double> first;   // (i, i+1) at i; the last entry is unused
  std::vector<double> second;  // (i, i+2) at i; the last two entries are unused
};

// A = L D L^T.
class BandedFactor {
 public:
  explicit BandedFactor(const BandedMatrix& a);

  std::vector<double> solve(std::span<const double> b) const;
  double log_determinant() const;
  // The diagonal of the inverse, by the backward recurrence over the factor's own pattern
  // (M. F. Hutchinson and F. R. de Hoog, Numer. Math. 47, 1985).
  std::vector<double> inverse_diagonal() const;

 private:
  std::vector<double> d_;   // D
  std::vector<double> l1_;  // L(i+1, i) at i
  std::vector<double> l2_;  // L(i+2, i) at i
};

}  // namespace gpoeo::response
