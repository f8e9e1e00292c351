// SPDX-License-Identifier: Apache-2.0
// Which counter sources a run has, best first, and why not a better one; and what is made of a
// profile for others.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/gpu_channel.h"
#include "control/profile.h"
#include "control/profiler.h"
#include "report/session.h"

namespace gpoeo::control {

// Which sources a user lets a run use.
enum class CounterUse { kAuto, kGpm, kInProcess, kNone };
// "auto", "gpm", "cupti", "none"; kInvalid with that list otherwise.
Result<CounterUse> parse_counter_use(std::string_view text);

struct CounterOptions {
  CounterUse use = CounterUse::kAuto;
  // Sources in the job's process; used when GPM is not there or fails.
  std::vector<NamedSource> in_process{};
  std::string no_in_process{};  // why there is none
};

// Why this device has no counters from outside; empty: it has.
std::string why_no_gpm(const gpu::Device& device);

// GPM when every GPU has it, then those in the process.
std::unique_ptr<Profiler> make_profiler(std::span<const std::unique_ptr<GpuChannel>> gpus,
                                        CounterOptions options);

// Fills what the driver says beside the counters, over the baseline's iterations.
void complete_profile(Profile& profile, const GpuChannel& gpu, std::span<const Instant> ends);
report::ProfileSection section_of(const Profile& profile);
// One line for the log.
std::string describe(const Profile& profile);

}  // namespace gpoeo::control
