// SPDX-License-Identifier: Apache-2.0
#include "control/gpu_group.h"

#include <algorithm>

namespace gpoeo::control {
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

std::optional<Watts> newest_power(GpuGroup gpus) {
  std::optional<Watts> sum;
  for (const auto& gpu : gpus) {
    if (const auto power = gpu->newest_power()) sum = sum.value_or(Watts(0)) + *power;
  }
  return sum;
}

}  // namespace gpoeo::control
