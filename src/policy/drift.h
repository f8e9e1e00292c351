// SPDX-License-Identifier: Apache-2.0
// How a job's time and power wander by themselves, clocks standing still.
#pragma once

#include <array>

#include "policy/evidence.h"

namespace gpoeo::policy {

// The sum of two Ornstein-Uhlenbeck processes: DESIGN section 11's (sigma 0.3 %, 60 s), and a
// slower one (0.2 %, 900 s) for what that leaves out: measured repeats of whole runs scatter by 0.3
// to 1 %.
struct DriftShape {
  double sd, tau_s;
};
inline constexpr std::array kDrifts = {DriftShape{0.003, 60}, DriftShape{0.002, 900}};

// What the means over the span of a block wander by, one standard deviation for each process.
struct DriftMean {
  double at_s = 0;
  std::array<double, kDrifts.size()> sd{};
};
DriftMean drift_mean(const Evidence& block);

double drift_covariance(const DriftMean& a, const DriftMean& b);

}  // namespace gpoeo::policy
