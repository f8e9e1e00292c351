// SPDX-License-Identifier: Apache-2.0
#include "policy/zeus.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "policy/replay.h"

namespace gpoeo::policy {
namespace {

// So many iterations, however long they take.
MeasureGoal iterations(std::size_t n) {
  return {.least_iterations = n, .least = Seconds(0), .longest = Seconds(1800), .precision = 0};
}

struct Profile {
  ClockSetting setting;
  Look look;
};

// The highest limit is the card's default, so nothing is set for it.
Known<std::vector<Profile>> sweep(const Replay& replay, const PowerLimitRange& range,
                                  const ZeusOptions& options) {
  std::vector<Profile> profiles;
  std::optional<Observation> base;
  for (Watts limit = range.highest; limit >= range.lowest; limit -= options.step) {
    ClockSetting setting;
    if (limit < range.highest) setting.power_limit = limit;
    GPOEO_TRY_STATUS(
        replay.window(setting, 1, iterations(options.warmup_iterations), "warm-up at this limit"));
    GPOEO_TRY(const Observation o, replay.window(setting, 2, iterations(options.profile_iterations),
                                                 "profiling this limit"));
    if (!base) base = o;
    profiles.push_back({setting, {.time = o.time / base->time, .energy = o.energy / base->energy}});
  }
  return profiles;
}

Decision choose(const Replay& replay, const std::vector<Profile>& profiles) {
  const Problem& problem = replay.problem();
  const Profile* best = &profiles.front();
  for (const Profile& p : profiles) {  // descending limits
    const bool cost = problem.objective == Objective::kCost;
    if (!cost && p.look.time > 1 + problem.max_slowdown) continue;
    if (problem.objective == Objective::kEnergy ||
        replay.reward(p.look) < replay.reward(best->look)) {
      best = &p;
    }
  }
  return hold(best->setting,
              fmt::format("{:.1f} % less energy at {:+.1f} % time profiled",
                          100 * (1 - best->look.energy), 100 * (best->look.time - 1)));
}

}  // namespace

Decision Zeus::decide(const Problem& problem, std::span<const Observation> observations) const {
  if (!problem.power) return hold({}, "this card's power limit cannot be set");
  const Replay replay(problem, observations, {});
  const auto profiles = sweep(replay, *problem.power, options_);
  if (!profiles) return profiles.error();
  return choose(replay, *profiles);
}

}  // namespace gpoeo::policy
