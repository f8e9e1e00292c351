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

std::optional<report::Figure> EnergyTimeline::between(Instant from, Instant to) const {
  const double span = to_seconds(to - from).value();
  if (span <= 0 || stretches_.empty()) return std::nullopt;
  double energy = 0, variance = 0;
  for (const auto& [gpu, stretches] : stretches_) {
    double known = 0, known_variance = 0, covered = 0;
    const auto begin = std::ranges::upper_bound(stretches, from, {}, &Stretch::to);
    for (const Stretch& s : std::ranges::subrange(begin, stretches.end())) {
      if (s.from >= to) break;
      const Instant a = std::max(s.from, from), b = std::min(s.to, to);
      const double share = to_seconds(b - a) / to_seconds(s.to - s.from);
      known += share * s.energy_j;
      known_variance += square(share * s.error_j);
      covered += to_seconds(b - a).value();
    }
    if (covered < kLeastCoverage * span) return std::nullopt;
    const double filled = known * (span - covered) / covered;
    energy += known + filled;
    variance += known_variance + square(kHoleError * filled);
  }
  return report::Figure{energy, std::sqrt(variance)};
}

std::optional<Instant> EnergyTimeline::known_to() const {
  std::optional<Instant> to;
  for (const auto& [gpu, stretches] : stretches_) {
    to = to ? std::min(*to, stretches.back().to) : stretches.back().to;
  }
  return to;
}

}  // namespace gpoeo::control
