// SPDX-License-Identifier: Apache-2.0
#include "policy/drift.h"

#include <array>
#include <cmath>

namespace gpoeo::policy {
namespace {

struct DriftShape {
  double sd, tau_s;
};
constexpr std::array kDrifts = {DriftShape{0.003, 60}, DriftShape{0.002, 900}};

// What is left of the process' standard deviation in its mean over `span_s`.
double shrink(double span_s, double tau_s) {
  const double r = span_s / tau_s;
  if (r < 1e-3) return 1.0;
  return std::sqrt(2 / r * (1 - (1 - std::exp(-r)) / r));
}

}  // namespace

double drift_covariance(const Evidence& a, const Evidence& b) {
  double sum = 0;
  for (const DriftShape& d : kDrifts) {
    sum += d.sd * d.sd * shrink(a.span_s, d.tau_s) * shrink(b.span_s, d.tau_s) *
           std::exp(-std::abs(a.at_s - b.at_s) / d.tau_s);
  }
  return sum;
}

}  // namespace gpoeo::policy
