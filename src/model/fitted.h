// SPDX-License-Identifier: Apache-2.0
// The trained numbers behind a Predictor. Inner part of predictor.h and trainer.h.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "model/forest.h"
#include "model/power_prior.h"
#include "model/predictor.h"
#include "model/time_prior.h"

namespace gpoeo::model {

// What trees correct, each by its own forest.
enum class Target { kSlope, kKnee, kLevel, kPower0, kPower1, kCount };
inline constexpr std::size_t kTargetCount = static_cast<std::size_t>(Target::kCount);
std::string_view to_string(Target target);

struct Fitted {
  ModelFacts facts;
  TimePrior time_prior{};
  PowerBasis power_basis;
  PowerKernel power_kernel;
  std::array<Forest, kTargetCount> forests;
  std::array<std::string, kTargetCount> forest_json;  // XGBoost's text; empty: no trees
  int time_rounds = 0;
  int power_rounds = 0;
  // Half-widths of 90 % intervals on ln T and ln E, per unit of doubt(), at the default memory
  // clock and at others.
  std::array<double, 2> time_spread{};
  std::array<double, 2> energy_spread{};
};

using TreeRow = std::array<float, kFeatureCount>;
TreeRow tree_row(const Features& features, double memory_slowdown);

// One line as predicted: its shape and power scores.
struct PredictedLine {
  TimeShape shape;
  PowerScores scores{};
};
PredictedLine prior_line(const Fitted& fitted, const Features& features, double memory_slowdown,
                         double top);
using Corrections = std::array<double, kTargetCount>;
void correct(PredictedLine& line, const Corrections& by, bool is_default);
// Where a line's level is taken: the default clock, or its own highest if that is lower.
double line_top(double least_slowdown);

// How far from known a point is: 0 at the default setting, towards 1 with the distance from it.
double doubt(double sm_slowdown, double memory_slowdown);

}  // namespace gpoeo::model
