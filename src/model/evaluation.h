// SPDX-License-Identifier: Apache-2.0
// Judges models on measured workloads that they never saw: errors, picks by prediction alone, and
// interval coverage, beside the baselines. Truth is the smoothed table. Thread rule: pure, slow.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/dataset.h"
#include "model/trainer.h"

namespace gpoeo::model {

enum class HoldOut { kWorkload, kFamily };

// What one way of predicting did with one held-out workload.
struct WorkloadScore {
  std::string workload;
  double time_error = 0;  // mean absolute relative, over all its points
  double energy_error = 0;
  double time_bias = 0;  // mean relative: above 0, predicted too slow
  double energy_bias = 0;
  double time_covered = 0;  // share of points inside their 90 % interval
  double energy_covered = 0;
  double oracle_saving = 0;  // the best single clock pair within the limit
  double picked_saving = 0;  // the truth at the pick
  double picked_slowdown = 0;
  double picked_sm_mhz = 0;
};

struct MethodScores {
  std::string method;
  bool has_intervals = false;
  std::vector<WorkloadScore> workloads;
  std::vector<double> time_errors, energy_errors;  // every point's
};

struct EvaluationOptions {
  HoldOut hold_out = HoldOut::kWorkload;
  double max_slowdown = 0.05;
  // Picks keep the limit with this many standard errors in hand; absent: as the model says.
  std::optional<double> caution{};
  bool baselines = true;
  TrainOptions train{};
  std::function<void(const std::string&)> progress{};
};

// `extra`: further examples to learn from in every split, never judged (generated jobs).
Result<std::vector<MethodScores>> evaluate(const Dataset& measured, const Dataset& extra,
                                           const EvaluationOptions& options);

// One model, as it is, on workloads that are not in its training set (the caller sees to that).
MethodScores judge(const Predictor& predictor, const Dataset& on, const EvaluationOptions& options);

// Why a workload is hard, in one line: the workload whose profile is nearest, and how differently
// the two respond.
std::string explain(const Dataset& measured, const std::string& workload);

struct Summary {
  double time_mean = 0, time_median = 0;  // over workloads
  double energy_mean = 0, energy_median = 0;
  double time_point_median = 0, energy_point_median = 0;
  double time_covered = 0, energy_covered = 0;
  double saving_ratio = 0;  // mean of picked savings over mean of the oracle's
  int violations = 0;       // slow-down over limit + 0.5 points
};
Summary summarise(const MethodScores& scores, double max_slowdown);

}  // namespace gpoeo::model
