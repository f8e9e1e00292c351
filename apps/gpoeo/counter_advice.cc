// SPDX-License-Identifier: Apache-2.0
#include "counter_advice.h"

#include <fmt/format.h>

#include <optional>

#include "base/file.h"
#include "base/text.h"
#include "control/counter_choice.h"

namespace gpoeo::app {
namespace {

constexpr std::string_view kAdminOnly = "RmProfilingAdminOnly:";

// Whether the driver keeps counters to administrators; nullopt: it does not say.
std::optional<bool> admin_only(const std::filesystem::path& params) {
  const auto text = read_file(params, std::size_t{1} << 20);
  if (!text) return std::nullopt;
  for (const std::string_view line : split(*text, '\n')) {
    if (!line.starts_with(kAdminOnly)) continue;
    return trim(line.substr(kAdminOnly.size())) != "0";
  }
  return std::nullopt;
}

}  // namespace

CounterAdvice advise_on_counters(const gpu::Device& device, bool root,
                                 const std::filesystem::path& params) {
  const std::string no_gpm = control::why_no_gpm(device);
  if (no_gpm.empty()) return {.ok = true, .text = "GPM, from outside the job", .cure = {}};
  if (device.identity().simulated) {
    return {.ok = true,
            .text = fmt::format("from the twin's job, in place of CUPTI ({})", no_gpm),
            .cure = {}};
  }
  const auto restricted = admin_only(params);
  if (restricted.value_or(false) && !root) {
    return {.ok = false,
            .text = fmt::format("none: {}; CUPTI in the job's process: the driver keeps counters "
                                "to administrators ({} says {} 1)",
                                no_gpm, params.string(), kAdminOnly),
            .cure =
                "put 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' into "
                "/etc/modprobe.d/nvidia-profiling.conf and reload the driver (or reboot); or "
                "run as root"};
  }
  std::string text = fmt::format(
      "CUPTI PM sampling in the job's process, where the job has libcupti of CUDA 12.6 or newer "
      "({})",
      no_gpm);
  if (!restricted) text += fmt::format("; {} does not say who may read counters", params.string());
  return {.ok = true, .text = std::move(text), .cure = {}};
}

}  // namespace gpoeo::app
