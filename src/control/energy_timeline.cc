// SPDX-License-Identifier: Apache-2.0
#include "control/energy_timeline.h"

#include <algorithm>
#include <cmath>
#include <ranges>

namespace gpoeo::control {
namespace {

// Least share of the time whose energy must be known before anything is said of it.
constexpr double kLeastCoverage = 0.9;
// Power in a hole may differ from the mean around it by this much (one standard error).
constexpr double kHoleError = 0.3;

double square(double x) { return x * x; }

}  // namespace

void EnergyTimeline::add(unsigned gpu, Instant from, Instant to, Joules energy, Joules error) {
  stretches_[gpu].push_back({from, to, energy.value(), error.value()});
}

EnergyTimeline::Known EnergyTimeline::known(const std::vector<Stretch>& stretches, Instant from,
                                            Instant to) {
  Known sum;
  const auto begin = std::ranges::upper_bound(stretches, from, {}, &Stretch::to);
  for (const Stretch& s : std::ranges::subrange(begin, stretches.end())) {
    if (s.from >= to) break;
    const Instant a = std::max(s.from, from), b = std::min(s.to, to);
    const double share = to_seconds(b - a) / to_seconds(s.to - s.from);
    sum.energy_j += share * s.energy_j;
    sum.variance += square(share * s.error_j);
    sum.covered_s += to_seconds(b - a).value();
  }
  return sum;
}

std::optional<report::Figure> EnergyTimeline::between(Instant from, Instant to) const {
  const double span = to_seconds(to - from).value();
  if (span <= 0 || stretches_.empty()) return std::nullopt;
  double energy = 0, variance = 0;
  for (const auto& [gpu, stretches] : stretches_) {
    const Known k = known(stretches, from, to);
    if (k.covered_s < kLeastCoverage * span) return std::nullopt;
    const double filled = k.energy_j * (span - k.covered_s) / k.covered_s;
    energy += k.energy_j + filled;
    variance += k.variance + square(kHoleError * filled);
  }
  return report::Figure{energy, std::sqrt(variance)};
}

report::Figure EnergyTimeline::assumed_between(Instant from, Instant to) const {
  if (const auto known_well = between(from, to)) return *known_well;
  const double span = to_seconds(to - from).value();
  double energy = 0, variance = 0, filled = 0;
  for (const auto& [gpu, stretches] : stretches_) {
    const Known all = known(stretches, stretches.front().from, stretches.back().to);
    const Known k = known(stretches, from, to);
    energy += k.energy_j;
    variance += k.variance;
    filled += all.energy_j / all.covered_s * (span - k.covered_s);
  }
  // What pauses draw is alike on all GPUs: off together.
  return {energy + filled, std::hypot(std::sqrt(variance), filled)};
}

std::optional<Instant> EnergyTimeline::known_to() const {
  std::optional<Instant> to;
  for (const auto& [gpu, stretches] : stretches_) {
    to = to ? std::min(*to, stretches.back().to) : stretches.back().to;
  }
  return to;
}

}  // namespace gpoeo::control
