// SPDX-License-Identifier: Apache-2.0
#include "control/work_baseline.h"

#include <algorithm>
#include <cmath>

#include "base/chance.h"
namespace gpoeo::control {
namespace {

// The first baseline is measured on a card that has just begun to work: its energy counts only as
// long as there is none that was measured later.
constexpr Seconds kCardIsWarm{60};

double square(double x) { return x * x; }

// Mean over iterations. Not weighted by the windows' own errors: among iterations of very different
// length the windows that look surest are those that met few of the long ones.
struct MeanOfWindows {
  double iterations = 0, sum = 0, squares = 0;
  void add(double value, double error, std::size_t n) {
    const auto weight = static_cast<double>(n);
    iterations += weight;
    sum += weight * value;
    squares += square(weight) * (square(error) + 1e-6 * square(value));
  }
  double mean() const { return sum / iterations; }
  // A job wanders by itself, and the card's leakage with its temperature is not the same early and
  // late: no baseline is surer than that, however many windows it has.
  report::Figure with_drift() const {
    return {mean(), std::hypot(std::sqrt(squares) / iterations, kDriftSigma * mean())};
  }
};

}  // namespace

std::optional<report::BaselineSection> baseline_of(std::span<const policy::Observation> windows) {
  report::BaselineSection baseline;
  MeanOfWindows time, energy;
  const auto is_warm = [](const policy::Observation& w) {
    return w.setting.is_default() && w.at > kCardIsWarm;
  };
  const bool warm_one = std::ranges::any_of(windows, is_warm);
  for (const auto& w : windows) {
    if (!w.setting.is_default()) continue;
    ++baseline.windows;
    baseline.seconds += w.time.value() * static_cast<double>(w.iterations);
    time.add(w.time.value(), w.time_error.value(), w.iterations);
    if (warm_one && !is_warm(w)) continue;
    energy.add(w.energy.value(), w.energy_error.value(), w.iterations);
  }
  if (baseline.windows == 0) return std::nullopt;
  baseline.time_s = time.with_drift();
  baseline.energy_j = energy.with_drift();
  baseline.energy_j.error = std::hypot(
      baseline.energy_j.error, (warm_one ? kThermalError : kColdError) * baseline.energy_j.value);
  return baseline;
}

std::optional<report::Figure> time_at(std::span<const policy::Observation> windows,
                                      const policy::ClockSetting& setting) {
  MeanOfWindows time;
  for (const auto& w : windows) {
    if (w.setting == setting) time.add(w.time.value(), w.time_error.value(), w.iterations);
  }
  if (time.iterations <= 0) return std::nullopt;
  return time.with_drift();
}

}  // namespace gpoeo::control
