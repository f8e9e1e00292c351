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
  if (text == "cupti") return CounterUse::kCupti;
  if (text == "none") return CounterUse::kNone;
  return make_error(
      ErrorKind::kInvalid,
      fmt::format("'{}' is no counter source; there are auto, gpm, cupti and none", text));
}

std::unique_ptr<Profiler> make_profiler(GpuGroup gpus, CounterOptions options) {
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
  if (all || options.use == CounterUse::kCupti) {
    for (NamedSource& source : options.by_cupti) sources.push_back(std::move(source));
  }
  return std::make_unique<Profiler>(std::move(sources), std::move(why_not));
}

}  // namespace gpoeo::control
