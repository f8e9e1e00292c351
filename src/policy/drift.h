// SPDX-License-Identifier: Apache-2.0
// How a job's time and power wander by themselves, clocks standing still.
#pragma once

#include "policy/evidence.h"

namespace gpoeo::policy {

// Covariance of the drift's means over the spans of two blocks, at its usual size. The sum of two
// Ornstein-Uhlenbeck processes: DESIGN section 11's (sigma 0.3 %, 60 s), and a slower one (0.2 %,
// 900 s) for what that leaves out: measured repeats of whole runs scatter by 0.3 to 1 %.
double drift_covariance(const Evidence& a, const Evidence& b);

}  // namespace gpoeo::policy
