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
  double tolerance = 0.0045;
  double tail_sigmas = 1.5;
  double hold_sigmas = 0.0;    // a setting is held with so many errors to spare
  double stay_sigmas = -1.0;   // and kept with so many
  double hysteresis = 0.005;   // expected gain for which a held setting is left
  double least_saving = 0.01;  // below this there is nothing to gain: default clocks
  double settle_s = 0.7;       // after each change of clocks
  double probe_error = 0.004;  // what it measures time to, drift included
  double probe_energy_error = 0.005;
  double write_cost_s = 3;  // what changing clocks costs, in seconds at default clocks
  double least_horizon_s = 300;
  double most_horizon_s = 1200;
  // Of the energy used so far, or of that of so short a job, may be lost by looking.
  double most_loss = 0.0045;
  double shortest_job_s = 120;
  double downside_sigmas = 1.2;
  double urgent_gain = 0.015;   // expected gain for which the pace does not matter
  double hopeful_sigmas = 1.3;  // a setting is looked at only when so many errors could save it
  double baseline_share = 0.5;  // of the limit; default clocks must be known to that
  double furthest_step = 0.65;  // of the lowest level looked at; no setting below it is tried
  std::size_t most_probes = 16;
  std::size_t free_moves = 2;  // made at once; later ones ever rarer
  double pace_s = 6;
  double pace_growth = 2.2;
  std::size_t most_looks = 2;           // at one setting before it is held or left ...
  double look_again_s = 40;             // ... for so long, times the looks there were
  double first_baseline_after_s = 200;  // the second baseline; later ones ever rarer
  double baseline_growth = 5;
  double least_baseline_gap_s = 100;  // times the baselines there were
  double baseline_s = 6;              // what one takes, settling included
  double baseline_error = 0.0042;     // of one of them, drift included
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
