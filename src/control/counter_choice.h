// SPDX-License-Identifier: Apache-2.0
// Which counter sources a run has, best first, and why not a better one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "control/gpu_group.h"
#include "control/profiler.h"

namespace gpoeo::control {

// Which sources a user lets a run use.
enum class CounterUse { kAuto, kGpm, kCupti, kNone };
// "auto", "gpm", "cupti", "none"; kInvalid with that list otherwise.
Result<CounterUse> parse_counter_use(std::string_view text);

struct CounterOptions {
  CounterUse use = CounterUse::kAuto;
  // CUPTI's, or a twin job's in its place, best first: used when GPM is not there or fails.
  std::vector<NamedSource> by_cupti{};
};

// Why this device has no counters from outside; empty: it has.
std::string why_no_gpm(const gpu::Device& device);

// GPM when every GPU has it, then CUPTI's.
std::unique_ptr<Profiler> make_profiler(GpuGroup gpus, CounterOptions options);

}  // namespace gpoeo::control
