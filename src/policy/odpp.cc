// SPDX-License-Identifier: Apache-2.0
#include "policy/odpp.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "policy/replay.h"

namespace gpoeo::policy {
namespace {

// A trace of 25 s, and three periods of long iterations.
constexpr MeasureGoal kTrace{
    .least_iterations = 3, .least = Seconds(25), .longest = Seconds(180), .precision = 0.0};
constexpr int kSampled = 4;

using Curve = std::map<double, Look>;  // by Hz

Look between(const Curve& curve, double f) {
  const auto above = curve.lower_bound(f);
  if (above == curve.end()) return curve.rbegin()->second;
  if (above == curve.begin() || above->first == f) return above->second;
  const auto below = std::prev(above);
  const double share = (f - below->first) / (above->first - below->first);
  return {.time = below->second.time + share * (above->second.time - below->second.time),
          .energy = below->second.energy + share * (above->second.energy - below->second.energy)};
}

Hertz nearest(const std::vector<Hertz>& clocks, double f) {
  return *std::ranges::min_element(clocks, {}, [f](Hertz c) { return std::abs(c.value() - f); });
}

// The interpolated points; midpoints hold what was measured there, so that between two of them the
// line is the interpolation plus its correction.
Known<Curve> measure(const Replay& replay, double lowest) {
  const auto& clocks = replay.problem().sm_clocks;
  const double top = clocks.back().value();
  const double bottom = std::max(lowest * top, clocks.front().value());
  Curve curve;
  // Sampled clocks first (odd places are their midpoints), from the lowest up as published.
  for (const int first : {0, 1}) {
    for (int i = first; i < 2 * kSampled - 1; i += 2) {
      const Hertz f = nearest(clocks, bottom + (top - bottom) * i / (2 * kSampled - 2));
      ClockSetting setting;
      if (f < clocks.back()) setting.sm = f;
      GPOEO_TRY(curve[f.value()],
                replay.probe(setting, first == 0 ? "sampled clock" : "calibration clock"));
    }
  }
  return curve;
}

}  // namespace

Decision Odpp::decide(const Problem& problem, std::span<const Observation> observations) const {
  if (problem.sm_clocks.size() < 2 * kSampled) return hold({}, "too few SM clocks to sample");
  const Replay replay(problem, observations, kTrace);
  const auto curve = measure(replay, options_.lowest);
  if (!curve) return curve.error();
  ClockSetting best;
  Look expected;
  for (const Hertz f : problem.sm_clocks) {
    if (f == problem.sm_clocks.back() || f.value() < curve->begin()->first) continue;
    const Look look = between(*curve, f.value());
    if (look.time > 1 + options_.margin * problem.max_slowdown) continue;
    if (replay.reward(look) >= replay.reward(expected)) continue;
    best.sm = f;
    expected = look;
  }
  return hold(best, fmt::format("{:.1f} % less energy at {:+.1f} % time predicted",
                                100 * (1 - expected.energy), 100 * (expected.time - 1)));
}

}  // namespace gpoeo::policy
