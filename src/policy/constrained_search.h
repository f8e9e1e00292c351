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
#include "/tmp/pol/knob.h"

namespace gpoeo::policy {

struct ConstrainedSearchOptions {
  double tolerance = 0.0045;
  double tail_sigmas = 1.5;
  double stay_sigmas = -1.0;  // a held setting is kept with so many errors to spare
  double least_saving = 0.01;  // below this there is nothing to gain: default clocks
  double settle_s = 0.7;       // after each change of clocks
  double write_price_s = knob("WP", 0.6);
  double shortest_job_s = knob("SJ", 120);
  // Of the energy used so far, or of that of so short a job, may be lost by looking.
  double most_loss = 0.0045;
  double downside_sigmas = knob("DS", 2);
  double baseline_share = 0.5;  // of the limit; default clocks must be known to that
  double furthest_step = 0.65;  // of the lowest level looked at; no setting below it is tried
  double second_baseline_s = knob("SB", 300);
  double baseline_age = knob("BA", .85);
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
