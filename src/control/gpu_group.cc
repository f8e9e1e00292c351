// SPDX-License-Identifier: Apache-2.0
#include "control/gpu_group.h"

#include <algorithm>
#include <cmath>

namespace gpoeo::control {
namespace {

// Where too little was measured to tell.
constexpr double kUnknownError = 0.05;

}  // namespace

Status set_clocks(GpuGroup gpus, const policy::ClockSetting& setting) {
  for (const auto& gpu : gpus) GPOEO_TRY_STATUS(gpu->set_clocks(setting));
  return {};
}

void restore(GpuGroup gpus) {
  for (const auto& gpu : gpus) static_cast<void>(gpu->restore());
}

bool any_touched(GpuGroup gpus) {
  return std::ranges::any_of(gpus, [](const auto& gpu) { return gpu->touched(); });
}

std::optional<Instant> settled(GpuGroup gpus, Instant now) {
  Instant last{};
  for (const auto& gpu : gpus) {
    const auto at = gpu->settled(now);
    if (!at) return std::nullopt;
    last = std::max(last, *at);
  }
  return last;
}

std::optional<policy::Observation> observe(GpuGroup gpus, std::span<const Instant> ends,
                                           std::optional<double> relative_error) {
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
  return o;
}

std::optional<Watts> newest_power(GpuGroup gpus) {
  std::optional<Watts> sum;
  for (const auto& gpu : gpus) {
    if (const auto power = gpu->newest_power()) sum = sum.value_or(Watts(0)) + *power;
  }
  return sum;
}

}  // namespace gpoeo::control
