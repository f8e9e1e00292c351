// SPDX-License-Identifier: Apache-2.0
// Observations and cards written by hand, for tests.
#pragma once

#include <optional>

#include "policy/policy.h"
#include "policy/testing/simulated_job.h"

namespace gpoeo::policy::testing {

// A sharp window of 30 iterations; no clock = default settings.
inline Observation look(std::optional<double> sm_mhz, double at_s, double time_s, double energy_j,
                        double relative_error = 0.001) {
  Observation o;
  if (sm_mhz) o.setting.sm = megahertz(*sm_mhz);
  o.at = Seconds(at_s);
  o.iterations = 30;
  o.time = Seconds(time_s);
  o.time_error = Seconds(relative_error * time_s);
  o.energy = Joules(energy_j);
  o.energy_error = Joules(relative_error * energy_j);
  return o;
}

inline Problem a100(double limit = 0.05) {
  return {.sm_clocks = a100_clocks(), .max_slowdown = limit};
}

// A card with three memory clocks, two of them almost the same.
inline Problem with_memory_clocks(double limit = 0.05) {
  Problem problem = a100(limit);
  problem.default_memory = megahertz(9501);
  for (const double memory : {9251.0, 5001.0, 810.0}) {
    problem.memory_gears.push_back({.memory = megahertz(memory), .sm_clocks = a100_clocks()});
  }
  return problem;
}

}  // namespace gpoeo::policy::testing
