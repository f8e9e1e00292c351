// SPDX-License-Identifier: Apache-2.0
// Boosted trees on top of the priors, their gradients taken through the response's formula: a tree
// for the slope is judged by the error of the whole curve, not of the slope. Inner part of
// trainer.h. Thread rule: one object, one thread.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "model/booster.h"
#include "model/fitted.h"

namespace gpoeo::model {

// Lines and what the priors say of each.
struct BoostSet {
  std::vector<LineOf> lines;
  std::vector<PredictedLine> prior;
};

// Corrections to the held-out lines after each number of rounds, 0 first.
using CorrectionPath = std::vector<std::vector<Corrections>>;

struct BoostResult {
  std::array<std::string, kTargetCount> json;  // after the last round; empty: no trees
  CorrectionPath held_out;
};

// `rounds` of the time targets and of the power targets. `held` may be empty.
Result<BoostResult> boost(const BoostSet& set, const PowerBasis& basis, int time_rounds,
                          int power_rounds, std::span<const LineOf> held);

}  // namespace gpoeo::model
