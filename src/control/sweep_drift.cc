// SPDX-License-Identifier: Apache-2.0
#include "control/sweep_drift.h"

#include <algorithm>
#include <cmath>

namespace gpoeo::control {
namespace {

// A quantity at default clocks over the sweep.
struct Track {
  std::vector<double> at_s, value, relative_error;

  double mean() const {
    double sum = 0;
    for (const double v : value) sum += v;
    return sum / static_cast<double>(value.size());
  }
  double at(double t) const {
    const auto after = std::ranges::upper_bound(at_s, t);
    if (after == at_s.begin()) return value.front();
    if (after == at_s.end()) return value.back();
    const auto i = static_cast<std::size_t>(after - at_s.begin());
    const double share = (t - at_s[i - 1]) / (at_s[i] - at_s[i - 1]);
    return value[i - 1] + share * (value[i] - value[i - 1]);
  }
};

Drift drift_of(const Track& track) {
  Drift drift;
  const std::size_t n = track.value.size();
  if (n < 3) return drift;
  const double mean = track.mean();
  double squares = 0, errors = 0;
  for (std::size_t i = 0; i < n; ++i) {
    squares += (track.value[i] / mean - 1) * (track.value[i] / mean - 1);
    errors += track.relative_error[i] * track.relative_error[i];
  }
  drift.spread = std::sqrt(squares / static_cast<double>(n - 1));
  drift.noise = std::sqrt(errors / static_cast<double>(n));
  if (drift.spread > drift.noise)
    drift.weight = 1 - drift.noise * drift.noise / (drift.spread * drift.spread);
  return drift;
}

}  // namespace

Undrifted take_out_drift(std::span<const policy::Observation> observations) {
  Track time, power;
  for (const policy::Observation& o : observations) {
    if (!o.setting.is_default()) continue;
    const double time_error = o.time_error / o.time;
    time.at_s.push_back(o.at.value());
    time.value.push_back(o.time.value());
    time.relative_error.push_back(time_error);
    power.at_s.push_back(o.at.value());
    power.value.push_back((o.energy / o.time).value());
    power.relative_error.push_back(std::hypot(o.energy_error / o.energy, time_error));
  }
  Undrifted result;
  result.time = drift_of(time);
  result.power = drift_of(power);
  const auto corrected = [](double value, const Track& track, const Drift& drift, double at_s) {
    if (drift.weight <= 0) return value;
    return value / (1 + drift.weight * (track.at(at_s) / track.mean() - 1));
  };
  for (const policy::Observation& o : observations) {
    const double at_s = o.at.value();
    result.rows.push_back({corrected(o.time.value(), time, result.time, at_s),
                           corrected((o.energy / o.time).value(), power, result.power, at_s)});
  }
  return result;
}

}  // namespace gpoeo::control
