// SPDX-License-Identifier: Apache-2.0
// The physics-shaped time of one line: flat while memory or the host sets the pace, growing with
// 1/f where the SMs do, with a smooth knee between.
//
//   ln T(x) = level + ln(1 + slope (s(x - knee) - s(x_top - knee))),  x = default clock / clock
//   s(z) = width ln(1 + exp(z / width))
//
// Two numbers follow each of the 19 measured A100 workloads within 0.1 to 2.7 % (mean absolute).
// slope >= 0, so T never falls when x grows. Thread rule: pure.
#pragma once

namespace gpoeo::model {

struct TimeShape {
  double level = 0;      // ln T at the line's highest clock
  double log_slope = 0;  // ln slope
  double knee = 0;
  double top = 1;  // x at the line's highest clock
};

// Width of the knee, in units of x. Chosen on the A100 set between 0.12 and 0.4.
inline constexpr double kKneeWidth = 0.2;

double log_time(const TimeShape& shape, double x);

struct LogTimeGradient {
  double value = 0;
  double by_log_slope = 0;
  double by_knee = 0;  // by the level it is 1
};
LogTimeGradient log_time_gradient(const TimeShape& shape, double x);

// ln(1 + exp(z / width)) * width without overflow.
double soft_plus(double z, double width);

}  // namespace gpoeo::model
