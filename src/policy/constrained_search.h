// SPDX-License-Identifier: Apache-2.0
// The default policy, `gpoeo`: predicted curves are the prior, measurements the evidence.
//
// After a first baseline each decision weighs, over every SM and memory clock:
//  - hold: the setting that is best in expectation among those whose slow-down is within the limit
//    with an upper confidence bound;
//  - probe: the setting whose measurement promises most, by how likely it is to be found within the
//    limit times how much it is expected to gain over what would be held now (knowledge gradient),
//    over the time that the job is likely to go on, against what the probe costs;
//  - baseline: default clocks again, when the choice hangs on them.
// It stops probing when no probe is worth its cost: a sequential test without a fixed number of
// probes. Holding goes on measuring, so that the belief sharpens and the setting is left when the
// evidence turns against it.
//
// How long a job goes on is not known: it is taken to go on for as long as it has been measured, at
// least for kLeastHorizon.
#pragma once

#include "policy/policy.h"

namespace gpoeo::policy {

struct ConstrainedSearchOptions {
  double hold_sigmas = 0.6;   // a setting is held with so many errors to spare
  double stay_sigmas = 0.2;    // and kept with so many
  double hysteresis = 0.002;   // expected gain for which a held setting is left
  double least_saving = 0.01;  // below this there is nothing to gain: default clocks
  double probe_s = 5;          // what a probe takes, settling included
  double probe_error = 0.004;  // what it measures time to, drift included
  double probe_energy_error = 0.005;
  double write_cost_s = 1.0;  // what changing clocks costs, in seconds at default clocks
  double least_horizon_s = 300;
  double most_horizon_s = 1200;
  std::size_t most_probes = 12;
  std::size_t most_looks = 2;          // at one setting before it is held or left
  double first_baseline_after_s = 90;  // the second baseline; later ones ever rarer
  double baseline_growth = 2.5;
  double longest_baseline_s = 900;
};

class ConstrainedSearch final : public Policy {
 public:
  explicit ConstrainedSearch(ConstrainedSearchOptions options = {}) : options_(options) {}
  std::string_view name() const override { return "gpoeo"; }
  Decision decide(const Problem& problem, std::span<const Observation> observations) const override;

 private:
  ConstrainedSearchOptions options_;
};

}  // namespace gpoeo::policy
