// SPDX-License-Identifier: Apache-2.0
// A policy that is listened to: what it decided and when, for the judge.
#pragma once

#include <optional>
#include <vector>

#include "base/clock.h"
#include "policy/policy.h"

namespace gpoeo::bench {

struct TimedDecision {
  Instant at;
  policy::Decision decision;
  bool new_work = false;  // the first with another log of observations: begun anew, or brought back
};

// Thread rule: one thread, although decide() is const: it writes down what it hears.
class WatchedPolicy final : public policy::Policy {
 public:
  WatchedPolicy(const policy::Policy& policy, const Clock& clock)
      : policy_(policy), clock_(clock) {}
  std::string_view name() const override { return policy_.name(); }
  policy::Decision decide(const policy::Problem& problem,
                          std::span<const policy::Observation> observations) const override {
    policy::Decision decision = policy_.decide(problem, observations);
    const std::optional<Seconds> first =
        observations.empty() ? std::nullopt : std::optional(observations.front().at);
    const bool new_work = first_ && first != first_;
    first_ = first;
    const bool same = !new_work && !decisions_.empty() &&
                      decisions_.back().decision.setting == decision.setting &&
                      decisions_.back().decision.purpose == decision.purpose;
    if (!same) decisions_.push_back({clock_.now(), decision, new_work});
    return decision;
  }
  const std::vector<TimedDecision>& decisions() const { return decisions_; }

 private:
  const policy::Policy& policy_;
  const Clock& clock_;
  mutable std::vector<TimedDecision> decisions_;
  mutable std::optional<Seconds> first_;  // of the log that was heard last
};

}  // namespace gpoeo::bench
