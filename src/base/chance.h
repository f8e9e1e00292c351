// SPDX-License-Identifier: Apache-2.0
// Facts about chance that several modules must agree on.
#pragma once

namespace gpoeo {

// Half of a two-sided 90 % interval of a normal distribution, in standard deviations.
inline constexpr double kNinety = 1.645;

// How a job's iteration time and power wander by themselves between two looks at the same clock:
// an AR(1) process with this relative sigma and time constant (DESIGN section 11).
inline constexpr double kDriftSigma = 0.003;
inline constexpr double kDriftTime_s = 60.0;

}  // namespace gpoeo
