// SPDX-License-Identifier: Apache-2.0
// The log of observations, condensed: what a fit needs, in logarithms and with bounded size.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "policy/candidates.h"
#include "policy/policy.h"

namespace gpoeo::policy {

// Neighbouring windows at one setting, merged.
struct Evidence {
  std::size_t candidate = 0;  // index into the candidates; 0 = default
  double at_s = 0;            // middle, since the session's start
  double span_s = 0;          // time measured
  double log_time = 0;        // ln seconds per iteration, and its variance without drift
  double time_variance = 0;
  double log_power = 0;  // ln watts
  double power_variance = 0;
};

struct Looks {
  std::size_t windows = 0;
  double last_s = 0;
};

struct EvidenceLog {
  std::vector<Evidence> blocks;  // oldest first, at most kMostBlocks
  std::size_t baselines = 0;     // visits to default clocks
  double last_baseline_s = 0;    // middle of the newest
  double baseline_error = 0;     // standard error of their mean time, relative, without drift
  std::size_t probes = 0;        // other settings measured
  double measured_s = 0;         // in all
  // Relative variance of a mean over one second; over n seconds it is this over n.
  double time_noise = 0, power_noise = 0;
  std::vector<Looks> looks;  // for each candidate
};

inline constexpr std::size_t kMostBlocks = 48;

// Observations at settings that are no candidate (another session's lock, a rounded clock) count
// for the nearest level on the same memory clock.
EvidenceLog gather(std::span<const Candidate> candidates,
                   std::span<const Observation> observations);

}  // namespace gpoeo::policy
