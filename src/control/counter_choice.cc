// SPDX-License-Identifier: Apache-2.0
#include "control/counter_choice.h"

#include <fmt/format.h>

#include "control/gpm_source.h"

namespace gpoeo::control {

std::string why_no_gpm(const gpu::Device& device) {
  switch (device.capabilities()[gpu::Reading::kCounters]) {
    case gpu::Support::kYes:
    case gpu::Support::kUnknown:  // tried, and given up when it fails
      return "";
    case gpu::Support::kNoPermission:
      return "GPM: not permitted to this user";
    case gpu::Support::kNo:
      break;
  }
  return "GPM: not on this GPU or driver (Hopper or newer, without MIG, driver 520 or newer)";
}

std::unique_ptr<Profiler> make_profiler(std::span<const std::unique_ptr<GpuChannel>> gpus,
                                        CounterOptions options) {
  if (!options.read) {
    return std::make_unique<Profiler>(std::vector<NamedSource>{}, "counters were not asked for");
  }
  std::vector<NamedSource> sources;
  std::string why_not;
  std::vector<GpuChannel*> all;
  for (const auto& gpu : gpus) {
    all.push_back(gpu.get());
    if (why_not.empty()) why_not = why_no_gpm(gpu->device());
  }
  if (why_not.empty()) {
    sources.push_back({"GPM", std::make_unique<GpmSource>(std::move(all))});
  }
  for (NamedSource& source : options.in_process) sources.push_back(std::move(source));
  if (options.in_process.empty() && !options.no_in_process.empty() && sources.empty()) {
    why_not += "; " + options.no_in_process;
  }
  return std::make_unique<Profiler>(std::move(sources), std::move(why_not));
}

void complete_profile(Profile& profile, const GpuChannel& gpu, Instant from, Instant to) {
  if (const auto limit = gpu.device().power_limit()) profile.power_limit = *limit;
  const auto condition = gpu.condition(from, to);
  profile.gpu_utilization = condition.gpu_utilization;
  profile.memory_utilization = condition.memory_utilization;
  profile.sm_clock = condition.sm_clock;
  profile.memory_clock = condition.memory_clock;
}

report::ProfileSection section_of(const Profile& p) {
  report::ProfileSection s;
  s.source = std::string(to_string(p.origin));
  s.why = p.why;
  s.activity = p.activity;
  s.iterations = p.iterations;
  s.seconds = p.counted.value();
  s.remainder = p.remainder;
  s.recalled = p.recalled;
  s.time_s = p.time.value();
  s.power_w = p.power.value();
  if (p.power_limit) s.power_limit_w = p.power_limit->value();
  s.gpu_utilization = p.gpu_utilization;
  s.memory_utilization = p.memory_utilization;
  if (p.sm_clock) s.sm_mhz = to_mhz(*p.sm_clock);
  if (p.memory_clock) s.memory_mhz = to_mhz(*p.memory_clock);
  s.host_share = p.host_share;
  return s;
}

std::string describe(const Profile& p) {
  if (p.origin == CounterOrigin::kNone) return "profile: no counters: " + p.why;
  std::string text = fmt::format("profile: {}{} over {:.1f} iterations", to_string(p.origin),
                                 p.recalled ? ", read earlier," : "", p.iterations);
  for (const char* name : {"sm_active", "tensor_active", "dram_active"}) {
    if (const auto& value = p.activity.*find_activity(name)->field) {
      text += fmt::format(", {} {:.2f}", name, *value);
    }
  }
  return text;
}

}  // namespace gpoeo::control
