// SPDX-License-Identifier: Apache-2.0
// A job's response to the SM clock, from the clocks measured so far: what time and energy to expect
// at clocks in between and a little below.
#pragma once

#include <span>
#include <vector>

#include "policy/estimates.h"

namespace gpoeo::policy {

// Time: with x = f_default / f - 1, the time of a part that computes grows linearly in x and that
// of a part which waits for memory or the host does not grow; so measured ratios are made monotone
// (weighted pool-adjacent-violators) and joined by straight lines in x, which lie on or above the
// truth where it is convex. Below the lowest measured clock the steeper of the last and the mean
// slope goes on.
// Power: a parabola in f through (default, 1), by weighted least squares with a weak prior (a third
// less power at two thirds of the clock, as most cards show), so that one probe already bends it
// and five decide it. Energy = power x time.
class ResponseFit {
 public:
  ResponseFit(Hertz default_clock, std::span<const ClockEstimate> measured);

  double time_ratio(Hertz sm) const;
  double power_ratio(Hertz sm) const;
  double energy_ratio(Hertz sm) const { return time_ratio(sm) * power_ratio(sm); }

 private:
  struct Point {
    double x, ratio, weight;
  };
  struct Offset {
    Hertz sm;
    double power;  // measured ratio minus the parabola's
  };
  double parabola(Hertz sm) const;
  void fit_time(std::span<const ClockEstimate> measured);
  void fit_power(std::span<const ClockEstimate> measured);

  Hertz default_clock_;
  std::vector<Point> time_;  // ascending in x, ratio ascending; starts with {0, 1}
  double linear_ = 0;        // power = 1 - linear * d + quadratic * d^2, d = 1 - f / f_default
  std::vector<Offset> off_parabola_;  // ascending in clock; ends with {default, 0}
  double quadratic_ = 0;
};

}  // namespace gpoeo::policy
