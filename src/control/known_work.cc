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
// Between two clocks further apart than this nothing is said.
constexpr double kWidestGap = 1.7;
// What a straight line between two clocks may be off, over the logarithm of their distance.
constexpr double kGapError = 0.06;

// Time (s) and power (W) of an iteration, and how far off they may be, relative.
struct Look {
  double time, power;
  double doubt = 0;
};
Look look_of(const policy::Observation& o) {
  return {o.time.value(), o.energy.value() / o.time.value()};
}

// The clock it ran at; at default settings the one that was measured.
std::optional<Hertz> clock_of(const policy::Observation& o) {
  return o.setting.sm ? o.setting.sm : o.sm_clock;
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
    const auto f = clock_of(o);
    if (o.setting.memory != setting.memory || o.setting.power_limit || !f) continue;
    if (*f < *setting.sm && (below == nullptr || *f >= *clock_of(*below))) below = &o;
    if (*f > *setting.sm && (above == nullptr || *f <= *clock_of(*above))) above = &o;
  }
  if (below == nullptr || above == nullptr) return std::nullopt;
  const Hertz low_clock = *clock_of(*below), high_clock = *clock_of(*above);
  const double gap = high_clock / low_clock;
  if (gap > kWidestGap) return std::nullopt;
  const Look low = look_of(*below), high = look_of(*above);
  const double share = (*setting.sm - low_clock) / (high_clock - low_clock);
  return Look{.time = low.time + share * (high.time - low.time),
              .power = low.power + share * (high.power - low.power),
              .doubt = kGapError * std::log(gap)};
}

// How far `now` is from what the work had there, in units of what is alike; nullopt: unknown.
std::optional<double> distance(const Work& work, const policy::Observation& now) {
  const auto then = look_at(work.observations, now.setting);
  if (!then) return std::nullopt;
  const Look here = look_of(now);
  const double time_room = then->doubt + std::max(kAlike, kAlikeSigmas * now.time_error / now.time);
  const double power_room =
      then->doubt + std::max(kAlike, kAlikeSigmas * now.energy_error / now.energy);
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
