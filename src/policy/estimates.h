// SPDX-License-Identifier: Apache-2.0
// From the log of observations to one estimate per setting, relative to the default clocks as they
// were at about the same time (so that a drifting job does not pass for a slow-down).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "policy/policy.h"

namespace gpoeo::policy {

// Everything measured at one setting, over the default. Ratios: 1 = as at default clocks.
struct SettingEstimate {
  ClockSetting setting{};
  double time_ratio = 1;
  double time_error = 0;  // one standard error, drift of the baseline included
  double energy_ratio = 1;
  double energy_error = 0;
  std::size_t iterations = 0;
  bool held = true;
};

struct Estimates {
  std::vector<SettingEstimate> settings;  // in order of first use, default not among them
  Seconds last_baseline_at;               // middle of the newest baseline window
  std::size_t baselines = 0;
};

// nullopt when there is no baseline yet.
std::optional<Estimates> estimate(std::span<const Observation> observations);

}  // namespace gpoeo::policy
