// SPDX-License-Identifier: Apache-2.0
#include "model/boosting.h"

#include <algorithm>
#include <cmath>

namespace gpoeo::model {
namespace {

constexpr double kUnit = 0.05;  // of ln T and ln P: errors beyond count linearly
constexpr std::size_t kPointsPerLine = 12;
constexpr BoosterOptions kBoosting{.depth = 4, .rate = 0.1, .ridge = 8, .least_weight = 1};

std::size_t index(Target t) { return static_cast<std::size_t>(t); }
bool of_time(std::size_t target) { return target <= index(Target::kLevel); }

Result<Rows> rows_of(std::span<const LineOf> lines) {
  std::vector<float> values;
  values.reserve(lines.size() * kFeatureCount);
  for (const LineOf& l : lines) {
    const TreeRow row = tree_row(l.example->features, l.line->memory_slowdown);
    values.insert(values.end(), row.begin(), row.end());
  }
  return Rows::make(values, lines.size(), kFeatureCount);
}

struct Gradients {
  std::array<std::vector<float>, kTargetCount> g, h;
  explicit Gradients(std::size_t rows) {
    for (auto& v : g) v.assign(rows, 0);
    for (auto& v : h) v.assign(rows, 0);
  }
  void add(Target target, std::size_t row, double gradient, double hessian) {
    g[index(target)][row] += static_cast<float>(gradient);
    h[index(target)][row] += static_cast<float>(hessian);
  }
};

void add_time(const PredictedLine& now, const Line& line, std::size_t row, Gradients& out) {
  const std::size_t stride = std::max<std::size_t>(1, line.sm_slowdown.size() / kPointsPerLine);
  const double n =
      std::ceil(static_cast<double>(line.sm_slowdown.size()) / static_cast<double>(stride));
  for (std::size_t p = 0; p < line.sm_slowdown.size(); p += stride) {
    const LogTimeGradient at = log_time_gradient(now.shape, line.sm_slowdown[p]);
    const double error = at.value - line.log_time[p];
    const double weight = 1 / (std::sqrt(1 + error * error / (kUnit * kUnit)) * kUnit * kUnit * n);
    out.add(Target::kSlope, row, weight * error * at.by_log_slope,
            weight * at.by_log_slope * at.by_log_slope);
    out.add(Target::kKnee, row, weight * error * at.by_knee, weight * at.by_knee * at.by_knee);
    if (!line.is_default) out.add(Target::kLevel, row, weight * error, weight);
  }
}

// The shared curves are orthonormal: an error of a score is an error of the curve.
void add_power(const PredictedLine& now, const PowerScores& truth, double grid, std::size_t row,
               Gradients& out) {
  const double weight = 1 / (kUnit * kUnit * grid);
  out.add(Target::kPower0, row, weight * (now.scores[0] - truth[0]), weight);
  out.add(Target::kPower1, row, weight * (now.scores[1] - truth[1]), weight);
}

Result<std::vector<Corrections>> corrections(std::span<const std::optional<Booster>> boosters,
                                             const Rows& rows) {
  std::vector<Corrections> out(rows.count(), Corrections{});
  for (std::size_t t = 0; t < kTargetCount; ++t) {
    if (!boosters[t]) continue;
    GPOEO_TRY(const std::vector<float> values, boosters[t]->predict(rows));
    for (std::size_t i = 0; i < out.size(); ++i) out[i][t] = values[i];
  }
  return out;
}

}  // namespace

Result<BoostResult> boost(const BoostSet& set, const PowerBasis& basis, int time_rounds,
                          int power_rounds, std::span<const LineOf> held) {
  BoostResult result;
  result.held_out.emplace_back(held.size(), Corrections{});
  const int rounds = std::max(time_rounds, power_rounds);
  if (rounds == 0) return result;
  const bool levels =
      std::ranges::any_of(set.lines, [](const LineOf& l) { return !l.line->is_default; });
  GPOEO_TRY(const Rows rows, rows_of(set.lines));
  std::optional<Rows> held_rows;
  if (!held.empty()) {
    GPOEO_TRY(held_rows, rows_of(held));
  }
  std::array<std::optional<Booster>, kTargetCount> boosters;
  for (std::size_t t = 0; t < kTargetCount; ++t) {
    if ((of_time(t) ? time_rounds : power_rounds) == 0) continue;
    if (t == index(Target::kLevel) && !levels) continue;
    GPOEO_TRY(boosters[t], Booster::make(rows, kBoosting));
  }
  std::vector<PowerScores> truth;
  for (const LineOf& l : set.lines) truth.push_back(basis.project(*l.line));
  const double grid = static_cast<double>(basis.x.size());
  for (int round = 0; round < rounds; ++round) {
    GPOEO_TRY(const std::vector<Corrections> now, corrections(boosters, rows));
    Gradients gradients(set.lines.size());
    for (std::size_t i = 0; i < set.lines.size(); ++i) {
      PredictedLine line = set.prior[i];
      correct(line, now[i], set.lines[i].line->is_default);
      add_time(line, *set.lines[i].line, i, gradients);
      add_power(line, truth[i], grid, i, gradients);
    }
    for (std::size_t t = 0; t < kTargetCount; ++t) {
      if (!boosters[t] || round >= (of_time(t) ? time_rounds : power_rounds)) continue;
      GPOEO_TRY_STATUS(boosters[t]->boost(rows, gradients.g[t], gradients.h[t]));
    }
    if (held_rows) {
      GPOEO_TRY(result.held_out.emplace_back(), corrections(boosters, *held_rows));
    }
  }
  for (std::size_t t = 0; t < kTargetCount; ++t) {
    if (!boosters[t]) continue;
    GPOEO_TRY(result.json[t], boosters[t]->to_json());
  }
  return result;
}

}  // namespace gpoeo::model
