// SPDX-License-Identifier: Apache-2.0
// For search methods that were published as a sequence of steps: the method is written down as it
// runs, from its beginning, and asks for a measurement where it needs one. What was measured is
// answered from the log; the first thing that was not is the decision. So a policy stays a pure
// function of the log, and reads like the method.
#pragma once

#include <cmath>
#include <expected>
#include <optional>
#include <span>
#include <string>

#include "policy/objective.h"
#include "policy/policy.h"

namespace gpoeo::policy {

// What was asked for, or what must be done first to know it. Goes with GPOEO_TRY.
template <typename T>
using Known = std::expected<T, Decision>;

// One look at a setting, over the default clocks' first look. 1 = as at default clocks.
struct Look {
  double time = 1;
  double energy = 1;
};

class Replay {
 public:
  Replay(const Problem& problem, std::span<const Observation> log, MeasureGoal goal)
      : problem_(problem), log_(log), goal_(goal) {}

  const Problem& problem() const { return problem_; }

  // The `nth` window at `setting`, 1 the first.
  Known<Observation> window(const ClockSetting& setting, std::size_t nth, const MeasureGoal& goal,
                            const std::string& why) const {
    std::size_t seen = 0;
    for (const Observation& o : log_) {
      if (o.setting == setting && ++seen == nth) return o;
    }
    return std::unexpected(
        Decision{.purpose = setting.is_default() ? Purpose::kBaseline : Purpose::kProbe,
                 .setting = setting,
                 .goal = goal,
                 .why = why});
  }

  // The first look at `setting`, over the first at default clocks.
  Known<Look> probe(const ClockSetting& setting, const std::string& why) const {
    GPOEO_TRY(const Observation base, window({}, 1, goal_, "reference at default clocks"));
    if (setting.is_default()) return Look{};
    GPOEO_TRY(const Observation here, window(setting, 1, goal_, why));
    return Look{.time = here.time / base.time, .energy = here.energy / base.energy};
  }

  // What is to be least.
  double reward(const Look& look) const { return reward(look, problem_.objective); }
  double reward(const Look& look, Objective objective) const {
    return objective_value(objective, look.time, look.energy, problem_.cost_eta,
                           problem_.most_power_over_default);
  }

 private:
  const Problem& problem_;
  std::span<const Observation> log_;
  MeasureGoal goal_;
};

// Held for good: these methods do not look again until the work changes. Long windows, so that the
// bounded log does not lose their early looks.
inline Decision hold(const ClockSetting& setting, std::string why) {
  constexpr MeasureGoal kGoal{
      .least_iterations = 8, .least = Seconds(30), .longest = Seconds(60), .precision = 0.0};
  return {.purpose = setting.is_default() ? Purpose::kLeave : Purpose::kHold,
          .setting = setting,
          .goal = kGoal,
          .why = std::move(why)};
}

}  // namespace gpoeo::policy
