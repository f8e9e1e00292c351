// SPDX-License-Identifier: Apache-2.0
#include "control/observe.h"

#include <cmath>

namespace gpoeo::control {

std::optional<policy::Observation> observe_window(GpuGroup gpus, std::span<const Instant> ends,
                                                  std::optional<double> relative_error,
                                                  Instant started) {
  // Where too few iterations say anything about it.
  constexpr double kUnknownError = 0.05;
  policy::Observation o;
  double energy_variance = 0;
  for (const auto& gpu : gpus) {
    const auto measured = gpu->iteration_energy(ends);
    if (!measured) return std::nullopt;
    o.iterations = measured->iterations;
    o.time = measured->time;
    o.time_error =
        measured->time_error.value_or(measured->time * relative_error.value_or(kUnknownError));
    o.energy += measured->energy;
    const Joules error = measured->energy_error.value_or(measured->energy * kUnknownError);
    energy_variance += error.value() * error.value();
    o.held = o.held && gpu->held();
  }
  o.energy_error = Joules(std::sqrt(energy_variance));
  o.sm_clock = gpus.front()->condition(ends.front(), ends.back()).sm_clock;
  const auto since = [&](Instant t) { return to_seconds(t - started).value(); };
  o.at = Seconds((since(ends.front()) + since(ends.back())) / 2);
  return o;
}

}  // namespace gpoeo::control
