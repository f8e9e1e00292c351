// SPDX-License-Identifier: Apache-2.0
#include "control/known_work.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gpoeo::control {
namespace {

constexpr std::size_t kMostKept = 8;
// Windows of one work at one setting differ by drift and temperature; two kinds of work that are
// nearer than this in both time and power want nearly the same clocks anyway.
constexpr double kAlike = 0.03;
constexpr double kAlikeSigmas = 3;
// Between two clocks this far apart a straight line is as good as the windows are.
constexpr double kWidestGap = 1.25;

// Time (s) and power (W) of an iteration.
struct Look {
  double time, power;
};
Look look_of(const policy::Observation& o) {
  return {o.time.value(), o.energy.value() / o.time.value()};
}

// Newest look at `setting`, or a line between the nearest clocks on both sides.
std::optional<Look> look_at(std::span<const policy::Observation> all,
                            const policy::ClockSetting& setting) {
  const policy::Observation *below = nullptr, *above = nullptr;
  for (const auto& o : all) {
    if (o.setting == setting) below = above = &o;
  }
  if (below != nullptr) return look_of(*below);
  if (!setting.sm || setting.power_limit) return std::nullopt;
  for (const auto& o : all) {
    if (o.setting.memory != setting.memory || !o.setting.sm) continue;
    const Hertz f = *o.setting.sm;
    if (f < *setting.sm && (below == nullptr || f >= *below->setting.sm)) below = &o;
    if (f > *setting.sm && (above == nullptr || f <= *above->setting.sm)) above = &o;
  }
  if (below == nullptr || above == nullptr) return std::nullopt;
  if (*above->setting.sm / *below->setting.sm > kWidestGap) return std::nullopt;
  const Look low = look_of(*below), high = look_of(*above);
  const double share =
      (*setting.sm - *below->setting.sm) / (*above->setting.sm - *below->setting.sm);
  return Look{low.time + share * (high.time - low.time),
              low.power + share * (high.power - low.power)};
}

// How far `now` is from what the work had there, in units of what is alike; nullopt: unknown.
std::optional<double> distance(const Work& work, const policy::Observation& now) {
  const auto then = look_at(work.observations, now.setting);
  if (!then) return std::nullopt;
  const Look here = look_of(now);
  const double time_room = std::max(kAlike, kAlikeSigmas * now.time_error / now.time);
  const double power_room = std::max(kAlike, kAlikeSigmas * now.energy_error / now.energy);
  return std::max(std::abs(here.time / then->time - 1) / time_room,
                  std::abs(here.power / then->power - 1) / power_room);
}

}  // namespace

void KnownWork::remember(Work work) {
  const bool has_baseline = std::ranges::any_of(
      work.observations, [](const policy::Observation& o) { return o.setting.is_default(); });
  if (!has_baseline) return;
  kept_.push_back(std::move(work));
  if (kept_.size() > kMostKept) kept_.erase(kept_.begin());
}

std::optional<Work> KnownWork::recall(const policy::Observation& now) {
  auto best = kept_.end();
  double least = 1;
  for (auto work = kept_.begin(); work != kept_.end(); ++work) {
    const auto far = distance(*work, now);
    if (far && *far < least) {
      least = *far;
      best = work;
    }
  }
  if (best == kept_.end()) return std::nullopt;
  Work found = std::move(*best);
  kept_.erase(best);
  return found;
}

}  // namespace gpoeo::control
