// SPDX-License-Identifier: Apache-2.0
#include "control/problem.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpoeo::control {
namespace {

bool has(const gpu::Capabilities& capabilities, gpu::Control control) {
  return capabilities[control] != gpu::Support::kNo;
}

// Empty: none that could be set.
std::vector<Hertz> settable_clocks(const gpu::Device& device) {
  const auto& can = device.capabilities();
  return has(can, gpu::Control::kSmClocks) ? can.sm_clocks() : std::vector<Hertz>{};
}

bool same_memory_clocks(const gpu::Device& a, const gpu::Device& b) {
  return has(a.capabilities(), gpu::Control::kMemoryClocks) ==
             has(b.capabilities(), gpu::Control::kMemoryClocks) &&
         std::ranges::equal(
             a.capabilities().clocks, b.capabilities().clocks,
             [](const auto& x, const auto& y) { return x.memory == y.memory && x.sm == y.sm; });
}

std::string describe(const gpu::Device& device) {
  const auto& identity = device.identity();
  const auto clocks = settable_clocks(device);
  if (clocks.empty()) return fmt::format("GPU {} {} (none)", identity.index, identity.name);
  return fmt::format("GPU {} {} ({}, {:.0f} to {:.0f} MHz)", identity.index, identity.name,
                     clocks.size(), to_mhz(clocks.front()), to_mhz(clocks.back()));
}

void add_clocks(const gpu::Capabilities& capabilities, policy::Problem& problem) {
  if (!has(capabilities, gpu::Control::kSmClocks)) return;
  problem.sm_clocks = capabilities.sm_clocks();
  if (!has(capabilities, gpu::Control::kMemoryClocks) || capabilities.clocks.empty()) return;
  Hertz highest = capabilities.clocks.front().memory;
  for (const auto& entry : capabilities.clocks) highest = std::max(highest, entry.memory);
  problem.default_memory = highest;
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

Status check_alike(std::span<const std::unique_ptr<gpu::Device>> devices) {
  std::string cards;
  bool alike = true;
  for (const auto& device : devices) {
    cards += (cards.empty() ? "" : ", ") + describe(*device);
    alike = alike && settable_clocks(*device) == settable_clocks(*devices.front());
  }
  if (alike) return {};
  return make_error(ErrorKind::kNotSupported,
                    fmt::format("the job's GPUs differ in their SM clocks, so that no clock suits "
                                "all: {}; choose alike ones with --gpus",
                                cards));
}

policy::Problem choices(std::span<const std::unique_ptr<GpuChannel>> gpus) {
  policy::Problem problem;
  const gpu::Device& first = gpus.front()->device();
  for (const auto& gpu : gpus) {
    // Not even a power limit: the same watts are another thing on each.
    if (settable_clocks(gpu->device()) != settable_clocks(first)) return problem;
  }
  add_clocks(first.capabilities(), problem);
  for (const auto& gpu : gpus) {
    if (!same_memory_clocks(gpu->device(), first)) problem.memory_gears.clear();
  }
  for (const auto& gpu : gpus) {
    if (const auto bound = gpu->found_upper_clock()) keep_below(*bound, problem);
  }
  problem.power = power_range(gpus);
  return problem;
}

}  // namespace gpoeo::control
