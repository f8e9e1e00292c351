// SPDX-License-Identifier: Apache-2.0
#include "control/work_baseline.h"

#include <algorithm>
#include <cmath>

namespace gpoeo::control {
namespace {

// A job's own wandering between two looks at the same clock (DESIGN section 11), and the card's
// leakage with its temperature, which is not the same early and late: no baseline is surer than
// this, however many windows it has.
constexpr double kDriftSigma = 0.003;
// The first baseline is measured on a card that has just begun to work: its energy counts only as
// long as there is none that was measured later.
constexpr Seconds kCardIsWarm{60};

double square(double x) { return x * x; }

// Inverse-variance mean.
struct WeightedMean {
  double weights = 0, sum = 0;
  void add(double value, double error) {
    const double w = 1 / (square(error) + 1e-6 * square(value));
    weights += w;
    sum += w * value;
  }
  double mean() const { return sum / weights; }
  report::Figure with_drift() const {
    return {mean(), std::sqrt(1 / weights + square(kDriftSigma * mean()))};
  }
};

}  // namespace

std::optional<report::BaselineSection> baseline_of(std::span<const policy::Observation> windows) {
  report::BaselineSection baseline;
  WeightedMean time, energy;
  const auto is_warm = [](const policy::Observation& w) {
    return w.setting.is_default() && w.at > kCardIsWarm;
  };
  const bool warm_one = std::ranges::any_of(windows, is_warm);
  for (const auto& w : windows) {
    if (!w.setting.is_default()) continue;
    ++baseline.windows;
    baseline.seconds += w.time.value() * static_cast<double>(w.iterations);
    time.add(w.time.value(), w.time_error.value());
    if (warm_one && !is_warm(w)) continue;
    energy.add(w.energy.value(), w.energy_error.value());
  }
  if (baseline.windows == 0) return std::nullopt;
  baseline.time_s = time.with_drift();
  baseline.energy_j = energy.with_drift();
  baseline.energy_j.error =
      std::hypot(baseline.energy_j.error, kThermalError * baseline.energy_j.value);
  return baseline;
}

std::optional<report::Figure> time_at(std::span<const policy::Observation> windows,
                                      const policy::ClockSetting& setting) {
  WeightedMean time;
  for (const auto& w : windows) {
    if (w.setting == setting) time.add(w.time.value(), w.time_error.value());
  }
  if (time.weights <= 0) return std::nullopt;
  return time.with_drift();
}

}  // namespace gpoeo::control
