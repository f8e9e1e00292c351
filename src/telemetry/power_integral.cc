// SPDX-License-Identifier: Apache-2.0
#include "telemetry/power_integral.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace gpoeo::telemetry {

std::optional<PowerIntegral> integrate(const TimeRing<gpu::PowerSample>& samples, Instant t0,
                                       Instant t1, Duration usual_spacing, double gap_factor) {
  if (t1 <= t0 || samples.size() < 2) return std::nullopt;
  if (samples.front().time > t0 || samples.back().time < t1) return std::nullopt;

  const Duration gap_above(
      static_cast<Duration::rep>(gap_factor * static_cast<double>(usual_spacing.count())));
  const auto seconds_inside = [&](Instant from, Instant to) {
    const Duration d = std::min(to, t1) - std::max(from, t0);
    return d.count() > 0 ? to_seconds(d).value() : 0.0;
  };
  double energy_j = 0;
  double gaps_s = 0;
  double gaps_squared_s2 = 0;
  // Time-weighted mean and scatter of power (West's update, so that a large mean costs no digits).
  double weight_s = 0;
  double mean_w = 0;
  double scatter_w2s = 0;
  const auto take = [&](double power_w, double length_s) {
    if (length_s <= 0) return;
    energy_j += power_w * length_s;
    weight_s += length_s;
    const double off = power_w - mean_w;
    mean_w += off * length_s / weight_s;
    scatter_w2s += length_s * off * (power_w - mean_w);
  };
  // The sample that covers t0 is the first later than it.
  for (std::size_t i = std::max<std::size_t>(1, samples.first_after(t0)); i < samples.size(); ++i) {
    const gpu::PowerSample& before = samples[i - 1];
    const gpu::PowerSample& sample = samples[i];
    if (before.time >= t1) break;
    Instant covered_from = before.time;
    if (sample.time - before.time > gap_above) {
      covered_from = sample.time - usual_spacing;
      const double gap_s = seconds_inside(before.time, covered_from);
      take(0.5 * (before.power.value() + sample.power.value()), gap_s);
      gaps_s += gap_s;
      gaps_squared_s2 += gap_s * gap_s;
    }
    take(sample.power.value(), seconds_inside(covered_from, sample.time));
  }
  const double window_s = to_seconds(t1 - t0).value();
  const double deviation_w = weight_s > 0 ? std::sqrt(std::max(0.0, scatter_w2s / weight_s)) : 0.0;
  const double edge_s = to_seconds(usual_spacing).value();
  PowerIntegral result;
  result.energy = Joules(energy_j);
  result.uncertainty = Joules(deviation_w * std::sqrt(2 * edge_s * edge_s + gaps_squared_s2));
  result.deviation = Watts(deviation_w);
  result.coverage = 1.0 - gaps_s / window_s;
  return result;
}

std::optional<Duration> median_spacing(const TimeRing<gpu::PowerSample>& samples) {
  constexpr std::size_t kNewest = 128;
  if (samples.size() < 10) return std::nullopt;
  std::vector<Duration> distances;
  distances.reserve(kNewest);
  const std::size_t first = samples.size() > kNewest ? samples.size() - kNewest : 1;
  for (std::size_t i = first; i < samples.size(); ++i) {
    distances.push_back(samples[i].time - samples[i - 1].time);
  }
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return *middle;
}

}  // namespace gpoeo::telemetry
