// SPDX-License-Identifier: Apache-2.0
// A policy that is listened to: what it decided and when, for the judge.
#pragma once

#include <vector>

#include "base/clock.h"
#include "policy/policy.h"

namespace gpoeo::bench {

struct TimedDecision {
  Instant at;
  policy::Decision decision;
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
    const bool same = !decisions_.empty() &&
                      decisions_.back().decision.setting == decision.setting &&
                      decisions_.back().decision.purpose == decision.purpose;
    if (!same) decisions_.push_back({clock_.now(), decision});
    return decision;
  }
  const std::vector<TimedDecision>& decisions() const { return decisions_; }

 private:
  const policy::Policy& policy_;
  const Clock& clock_;
  mutable std::vector<TimedDecision> decisions_;
};

}  // namespace gpoeo::bench
