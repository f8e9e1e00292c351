// SPDX-License-Identifier: Apache-2.0
// Takes slow drift out of a sweep: the same default clocks are looked at again and again between
// the others, and what changed there is taken to have changed everywhere. Pure.
#pragma once

#include <span>
#include <vector>

#include "policy/policy.h"

namespace gpoeo::control {

// Of one of time or power.
struct Drift {
  double spread = 0;  // standard deviation of the default windows over their mean
  double noise = 0;   // what their own standard errors explain of it
  // Share of the interpolated change that is taken out: 1 - noise^2 / spread^2, at least 0, so that
  // noise is not passed on as if it were drift (the shrinkage of James and Stein, 1961). 0 with
  // fewer than three default windows.
  double weight = 0;
};

struct Undrifted {
  Drift time, power;
  struct Row {
    double time_s = 0, power_w = 0;
  };
  std::vector<Row> rows;  // one for each observation
};

// `observations` in the order in which they were made. Between two default windows the change is
// linear in time; before the first and after the last it stands.
Undrifted take_out_drift(std::span<const policy::Observation> observations);

}  // namespace gpoeo::control
