// SPDX-License-Identifier: Apache-2.0
#include "policy/fixed.h"

#include <algorithm>
#include <cmath>

namespace gpoeo::policy {

Decision DefaultClocks::decide(const Problem& /*problem*/,
                               std::span<const Observation> /*observations*/) const {
  return {.purpose = Purpose::kBaseline, .setting = {}, .goal = {}, .why = "policy default"};
}

Decision StaticClock::decide(const Problem& problem,
                             std::span<const Observation> observations) const {
  if (problem.sm_clocks.empty()) {
    return {.why = "the driver lists no SM clocks"};
  }
  if (observations.empty()) {
    return {
        .purpose = Purpose::kBaseline, .setting = {}, .goal = {}, .why = "before the static clock"};
  }
  const Hertz nearest = *std::ranges::min_element(
      problem.sm_clocks, {}, [this](Hertz f) { return std::abs((f - sm_).value()); });
  return {.purpose = Purpose::kHold,
          .setting = {.sm = nearest, .memory = std::nullopt},
          .goal = {},
          .why = "policy static"};
}

Decision StaticPowerLimit::decide(const Problem& problem,
                                  std::span<const Observation> observations) const {
  if (!problem.power) return {.why = "this card's power limit cannot be set"};
  if (observations.empty()) return {.purpose = Purpose::kBaseline, .why = "before the power limit"};
  ClockSetting setting;
  setting.power_limit = std::clamp(limit_, problem.power->lowest, problem.power->highest);
  return {.purpose = Purpose::kHold, .setting = setting, .goal = {}, .why = "policy power-limit"};
}

}  // namespace gpoeo::policy
