// SPDX-License-Identifier: Apache-2.0
// From the log of observations to one estimate per clock, relative to the default clocks as they
// were at about the same time (so that a drifting job does not pass for a slow-down).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "policy/policy.h"

namespace gpoeo::policy {

// Everything measured at one SM clock, over the default. Ratios: 1 = as at default clocks.
struct ClockEstimate {
  Hertz sm;
  double time_ratio = 1;
  double time_error = 0;  // one standard error, drift of the baseline included
  double energy_ratio = 1;
  double energy_error = 0;
  std::size_t iterations = 0;
  bool held = true;
};

struct Estimates {
  std::vector<ClockEstimate> clocks;  // ascending in SM clock, default not among them
  Seconds last_baseline_at;           // middle of the newest baseline window
  std::size_t baselines = 0;
};

// nullopt when there is no baseline yet.
std::optional<Estimates> estimate(std::span<const Observation> observations);

}  // namespace gpoeo::policy
