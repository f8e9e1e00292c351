// SPDX-License-Identifier: Apache-2.0
#include "control/problem.h"

#include <algorithm>

namespace gpoeo::control {
namespace {

bool has(const gpu::Capabilities& capabilities, gpu::Control control) {
  return capabilities[control] != gpu::Support::kNo;
}

void add_clocks(const gpu::Capabilities& capabilities, policy::Problem& problem) {
  if (!has(capabilities, gpu::Control::kSmClocks)) return;
  problem.sm_clocks = capabilities.sm_clocks();
  if (!has(capabilities, gpu::Control::kMemoryClocks) || capabilities.clocks.empty()) return;
  Hertz highest = capabilities.clocks.front().memory;
  for (const auto& entry : capabilities.clocks) highest = std::max(highest, entry.memory);
  for (const auto& entry : capabilities.clocks) {
    if (entry.memory < highest) problem.memory_gears.push_back({entry.memory, entry.sm});
  }
}

// A lock that somebody set before us is a bound for us too.
void keep_below(Hertz bound, policy::Problem& problem) {
  const auto above = [&](Hertz f) { return f > bound; };
  std::erase_if(problem.sm_clocks, above);
  for (auto& gear : problem.memory_gears) std::erase_if(gear.sm_clocks, above);
  std::erase_if(problem.memory_gears, [](const auto& gear) { return gear.sm_clocks.empty(); });
}

std::optional<policy::PowerLimitRange> power_range(
    std::span<const std::unique_ptr<GpuChannel>> gpus) {
  std::optional<policy::PowerLimitRange> range;
  for (const auto& gpu : gpus) {
    const auto& capabilities = gpu->device().capabilities();
    const auto& limits = capabilities.power_limits;
    if (!limits || !has(capabilities, gpu::Control::kPowerLimit)) return std::nullopt;
    if (!range) range = {.lowest = limits->min, .highest = limits->standard};
    range->lowest = std::max(range->lowest, limits->min);
    range->highest = std::min(range->highest, limits->standard);
    if (const auto enforced = gpu->device().power_limit()) {
      range->highest = std::min(range->highest, *enforced);
    }
  }
  if (range && range->lowest >= range->highest) return std::nullopt;
  return range;
}

}  // namespace

policy::Problem choices(std::span<const std::unique_ptr<GpuChannel>> gpus) {
  policy::Problem problem;
  add_clocks(gpus.front()->device().capabilities(), problem);
  for (const auto& gpu : gpus) {
    if (const auto bound = gpu->found_upper_clock()) keep_below(*bound, problem);
  }
  problem.power = power_range(gpus);
  return problem;
}

}  // namespace gpoeo::control
