// SPDX-License-Identifier: Apache-2.0
#include "policy/drift.h"

#include <cmath>

namespace gpoeo::policy {
namespace {

// What is left of the process' standard deviation in its mean over `span_s`.
double shrink(double span_s, double tau_s) {
  const double r = span_s / tau_s;
  if (r < 1e-3) return 1.0;
  return std::sqrt(2 / r * (1 - (1 - std::exp(-r)) / r));
}

}  // namespace

DriftMean drift_mean(const Evidence& block) {
  DriftMean mean{.at_s = block.at_s};
  for (std::size_t i = 0; i < kDrifts.size(); ++i) {
    mean.sd[i] = kDrifts[i].sd * shrink(block.span_s, kDrifts[i].tau_s);
  }
  return mean;
}

double drift_covariance(const DriftMean& a, const DriftMean& b) {
  double sum = 0;
  for (std::size_t i = 0; i < kDrifts.size(); ++i) {
    sum += a.sd[i] * b.sd[i] * std::exp(-std::abs(a.at_s - b.at_s) / kDrifts[i].tau_s);
  }
  return sum;
}

}  // namespace gpoeo::policy
