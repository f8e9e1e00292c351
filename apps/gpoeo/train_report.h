// SPDX-License-Identifier: Apache-2.0
// Prints what `gpoeo train --evaluate` found, as text (docs/models.md shows it) or JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/evaluation.h"

namespace gpoeo::app {

struct EvaluationReport {
  std::string title;
  std::optional<model::HoldOut> hold_out{};  // absent: a set of its own
  double max_slowdown = 0.05;
  std::vector<model::MethodScores> methods;  // ours first
};

void print_text(const EvaluationReport& report, const model::Dataset& measured);
void print_json(const std::vector<EvaluationReport>& reports);

}  // namespace gpoeo::app
