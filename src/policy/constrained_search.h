// SPDX-License-Identifier: Apache-2.0
// The default policy, `gpoeo`: predicted curves are the prior, measurements the evidence.
//
// After a first baseline each decision weighs, over every SM and memory clock (outlook.h):
//  - hold: the setting that is best in expectation among those whose slow-down is within the limit
//    with an upper confidence bound;
//  - measure: the setting, default clocks among them, whose measurement is worth most above its
//    cost, and for how long; nothing when none is worth its cost.
// There is no number of probes and no pace: both follow from the one comparison. Holding goes on
// measuring, so that the belief sharpens and the setting is left when the evidence turns against
// it.
#pragma once

#include "policy/policy.h"

namespace gpoeo::policy {

// "Chosen": with the bench, on a100-measured and titanx-measured, seeds 11 to 13.
struct ConstrainedSearchOptions {
  // A setting is held when it is within the limit in expectation, and over it by more than
  // `tolerance` with a chance of at most 5 %: DESIGN section 11 calls 0.5 points over a violation.
  double tolerance = 0.0045;
  double tail_sigmas = 1.65;
  // What is held already is left when it is over the limit by more than its error: half of the
  // settings that lie exactly at the limit would be left and taken again otherwise.
  double stay_sigmas = -1.0;
  // Below this there is nothing to gain that could be told from nothing.
  double least_saving = 0.01;
  // Before a card has settled after a change of clocks nothing is measured (telemetry/settle.h).
  double settle_s = 0.7;
  // What one change of clocks is worth avoiding, in seconds of the job's energy at default clocks:
  // settling, and the user's dislike of a card that never rests. Chosen: 12 changes in half an hour
  // (A100, median).
  double write_price_s = 0.75;
  // A job that has only begun is expected to go on for so long. Chosen: 120 to 300 are alike.
  double least_horizon_s = 200;
  // One look takes at most this share of the time that was measured so far. Chosen: 0.05 nets 1 %
  // less on the Titan X, without a bound the first hold comes too late.
  double longest_look = 0.1;
  // Of the energy used so far, or of that of so short a job, may be lost by looking: no job of two
  // minutes or more may lose more than 0.5 %. A look must keep to that at so many standard errors
  // for the worse: with 1.5 one Titan X job of two minutes in 75 lost 0.54 %.
  double most_loss = 0.0045;
  double shortest_job_s = 120;
  double downside_sigmas = 1.8;
  // Of the limit. What default clocks are known to no better than this cannot judge a slow-down.
  double baseline_share = 0.5;
  // Of the lowest level looked at; no setting below it is tried. A step of a third at a time.
  double furthest_step = 0.65;
  // What is claimed at the end rests on default clocks: they are measured once more when the card
  // is warm (its leakage has come up: control/work_baseline.h), and again when the newest is this
  // share of the time run so far old, since jobs change slowly.
  double card_is_warm_s = 60;
  double warm_baseline_s = 180;
  double baseline_age = 0.9;
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
