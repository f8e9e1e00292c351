// SPDX-License-Identifier: Apache-2.0
#include "policy/estimates.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/chance.h"
namespace gpoeo::policy {
namespace {

// Variance that `gap_s` seconds between two windows add to the ratio of their times.
double drift_variance(double gap_s) {
  return 2 * kDriftSigma * kDriftSigma * (1 - std::exp(-std::abs(gap_s) / kDriftTime_s));
}

struct Mean {
  double value = 0;
  double variance = 0;
};

// Inverse-variance mean of the baselines as seen from time `at`.
struct Baseline {
  Mean time;
  Mean energy;
};

Baseline baseline_at(double at_s, const std::vector<const Observation*>& baselines) {
  double time_weights = 0, time_sum = 0, energy_weights = 0, energy_sum = 0;
  for (const Observation* b : baselines) {
    const double drift = drift_variance(at_s - b->at.value());
    const double time_error = b->time_error / b->time;
    const double energy_error = b->energy_error / b->energy;
    const double wt = 1 / (time_error * time_error + drift + 1e-10);
    const double we = 1 / (energy_error * energy_error + drift + 1e-10);
    time_weights += wt;
    time_sum += wt * b->time.value();
    energy_weights += we;
    energy_sum += we * b->energy.value();
  }
  return {.time = {time_sum / time_weights, 1 / time_weights},
          .energy = {energy_sum / energy_weights, 1 / energy_weights}};
}

}  // namespace

std::optional<Estimates> estimate(std::span<const Observation> observations) {
  std::vector<const Observation*> baselines;
  for (const auto& o : observations) {
    if (o.setting.is_default()) baselines.push_back(&o);
  }
  if (baselines.empty()) return std::nullopt;

  struct Sums {
    ClockSetting setting{};
    double time_weights = 0, time = 0, time_baseline = 0;
    double energy_weights = 0, energy = 0, energy_baseline = 0;
    std::size_t iterations = 0;
    bool held = true;
  };
  std::vector<Sums> by_setting;
  for (const auto& o : observations) {
    if (o.setting.is_default()) continue;
    const Baseline base = baseline_at(o.at.value(), baselines);
    const double time_ratio = o.time.value() / base.time.value;
    const double energy_ratio = o.energy.value() / base.energy.value;
    const double time_error = o.time_error / o.time;
    const double energy_error = o.energy_error / o.energy;
    auto at = std::ranges::find(by_setting, o.setting, &Sums::setting);
    if (at == by_setting.end()) at = by_setting.insert(at, Sums{.setting = o.setting});
    Sums& s = *at;
    const double wt = 1 / (time_error * time_error + 1e-8);
    const double we = 1 / (energy_error * energy_error + 1e-8);
    s.time_weights += wt;
    s.time += wt * time_ratio;
    s.time_baseline += wt * base.time.variance;
    s.energy_weights += we;
    s.energy += we * energy_ratio;
    s.energy_baseline += we * base.energy.variance;
    s.iterations += o.iterations;
    s.held = o.held;
  }

  Estimates result;
  result.baselines = baselines.size();
  result.last_baseline_at = baselines.back()->at;
  for (const Sums& s : by_setting) {
    SettingEstimate e{.setting = s.setting};
    e.time_ratio = s.time / s.time_weights;
    // The windows of one clock share their baseline: its variance does not average out.
    e.time_error = e.time_ratio * std::sqrt(1 / s.time_weights + s.time_baseline / s.time_weights);
    e.energy_ratio = s.energy / s.energy_weights;
    e.energy_error =
        e.energy_ratio * std::sqrt(1 / s.energy_weights + s.energy_baseline / s.energy_weights);
    e.iterations = s.iterations;
    e.held = s.held;
    result.settings.push_back(e);
  }
  return result;
}

}  // namespace gpoeo::policy
