// SPDX-License-Identifier: Apache-2.0
// Zeus (You, Chung, Chowdhury, NSDI '23) as its GlobalPowerLimitOptimizer works: every power limit
// from the highest down in steps of 25 W gets 10 warm-up iterations that do not count and 40 that
// are measured; then one limit is set for good.
//
// The choice: under `energy`, the lowest limit whose iterations take at most 1 + max_slowdown times
// as long as at the highest limit (its MaxSlowdownConstraint); under `cost`, the least Zeus cost;
// under edp and ed2p, which it does not have, the least value within the slow-down.
#pragma once

#include "policy/policy.h"

namespace gpoeo::policy {

struct ZeusOptions {
  std::size_t warmup_iterations = 10;
  std::size_t profile_iterations = 40;
  Watts step{25};
};

class Zeus final : public Policy {
 public:
  explicit Zeus(ZeusOptions options = {}) : options_(options) {}
  std::string_view name() const override { return "zeus"; }
  Decision decide(const Problem& problem, std::span<const Observation> observations) const override;

 private:
  ZeusOptions options_;
};

}  // namespace gpoeo::policy
