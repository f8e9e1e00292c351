// SPDX-License-Identifier: Apache-2.0
#include "control/same_work.h"

#include <algorithm>
#include <cmath>

namespace gpoeo::control {
namespace {

// A clock at which iterations change by more than this between two looks has other work to do.
constexpr double kWorkChange = 0.12;
constexpr double kWorkChangeSigmas = 8;

// No work gets faster by a lower clock, nor slower by more than the clock was lowered: such a
// window and the baseline that it would be compared with hold different work.
bool impossible_response(const policy::Observation& now,
                         std::span<const policy::Observation> before,
                         std::span<const Hertz> sm_clocks) {
  if (!now.setting.sm || sm_clocks.empty()) return false;
  const auto baseline =
      std::ranges::find_if(before.rbegin(), before.rend(),
                           [](const policy::Observation& o) { return o.setting.is_default(); });
  if (baseline == before.rend()) return false;
  const double ratio = now.time / baseline->time;
  const double error =
      ratio * std::hypot(now.time_error / now.time, baseline->time_error / baseline->time);
  const double margin = kImpossibleMargin + kImpossibleSigmas * error;
  if (ratio < 1 - margin) return true;
  // How much slower a slow memory clock or a power limit may make it is not known.
  if (now.setting.memory || now.setting.power_limit) return false;
  return ratio > sm_clocks.back() / *now.setting.sm + margin;
}

}  // namespace

bool same_work(const policy::Observation& now, std::span<const policy::Observation> before,
               std::span<const Hertz> sm_clocks) {
  if (impossible_response(now, before, sm_clocks)) return false;
  // The sharpest look: one that happened to hold two kinds of work fits anything.
  const policy::Observation* earlier = nullptr;
  for (const auto& o : before) {
    if (o.setting != now.setting) continue;
    if (earlier == nullptr || o.time_error / o.time < earlier->time_error / earlier->time) {
      earlier = &o;
    }
  }
  if (earlier == nullptr) return true;
  const auto differs = [](double a, double b, double error) {
    return std::abs(a / b - 1) > std::max(kWorkChange, kWorkChangeSigmas * error / b);
  };
  const double time_error = std::hypot(now.time_error.value(), earlier->time_error.value());
  const double energy_error = std::hypot(now.energy_error.value(), earlier->energy_error.value());
  return !differs(now.time.value(), earlier->time.value(), time_error) &&
         !differs(now.energy.value(), earlier->energy.value(), energy_error);
}

}  // namespace gpoeo::control
