// SPDX-License-Identifier: Apache-2.0
// What a model is measured against, trained on the same examples: boosted trees on the plain
// counters and the clock, a ridge regression, and the same trees without counters. Each answers
// with ln T and ln E at a point of a line. Thread rule: one object, one thread.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/dataset.h"

namespace gpoeo::model {

struct LogCurves {
  std::vector<double> time, energy;  // at each sm_slowdown of the line
};

class Baseline {
 public:
  virtual ~Baseline() = default;
  virtual Result<LogCurves> predict(const Example& example, const Line& line) const = 0;
};

// 300 trees of depth 4 at rate 0.05 on ratios, rows and columns sampled at 0.8: common settings.
Result<std::unique_ptr<Baseline>> train_plain_trees(std::span<const Example> examples,
                                                    bool counters);
// Ridge on counters, clock and their products, unit penalty on standardised inputs.
std::unique_ptr<Baseline> train_ridge(std::span<const Example> examples);

}  // namespace gpoeo::model
