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

Result<CounterUse> parse_counter_use(std::string_view text) {
  if (text == "auto") return CounterUse::kAuto;
  if (text == "gpm") return CounterUse::kGpm;
  if (text == "cupti") return CounterUse::kInProcess;
  if (text == "none") return CounterUse::kNone;
  return make_error(
      ErrorKind::kInvalid,
      fmt::format("'{}' is no counter source; there are auto, gpm, cupti and none", text));
}

std::unique_ptr<Profiler> make_profiler(std::span<const std::unique_ptr<GpuChannel>> gpus,
                                        CounterOptions options) {
  std::vector<NamedSource> sources;
  std::string why_not;
  const auto add_reason = [&](const std::string& reason) {
    if (!reason.empty()) why_not += (why_not.empty() ? "" : "; ") + reason;
  };
  const bool all = options.use == CounterUse::kAuto;
  if (options.use == CounterUse::kNone) add_reason("counters were not asked for");
  if (all || options.use == CounterUse::kGpm) {
    std::vector<GpuChannel*> channels;
    std::string no_gpm;
    for (const auto& gpu : gpus) {
      channels.push_back(gpu.get());
      if (no_gpm.empty()) no_gpm = why_no_gpm(gpu->device());
    }
    add_reason(no_gpm);
    if (no_gpm.empty()) {
      sources.push_back({"GPM", std::make_unique<GpmSource>(std::move(channels))});
    }
  }
  if (all || options.use == CounterUse::kInProcess) {
    for (NamedSource& source : options.in_process) sources.push_back(std::move(source));
    add_reason(options.no_in_process);
  }
  return std::make_unique<Profiler>(std::move(sources), std::move(why_not));
}

void complete_profile(Profile& profile, const GpuChannel& gpu, std::span<const Instant> ends) {
  if (const auto limit = gpu.device().power_limit()) profile.power_limit = *limit;
  if (ends.size() < 2) return;
  const auto condition = gpu.condition(ends.front(), ends.back());
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
