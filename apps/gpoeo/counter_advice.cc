// SPDX-License-Identifier: Apache-2.0
#include "counter_advice.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/file.h"
#include "base/text.h"
#include "control/counter_choice.h"
#include "control/tool_process.h"
#include "injection.h"
#include "twin/data_files.h"

namespace gpoeo::app {
namespace {

constexpr auto kTryFor = std::chrono::seconds(10);
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

Result<std::string> try_cupti(const gpu::Device& device) {
  const auto data = twin::data_directory();
  if (!data) return std::unexpected(data.error());
  GPOEO_TRY(auto tool, control::ToolProcess::start({counters_program().string(), "--check", "--gpu",
                                                    device.identity().uuid, "--metrics",
                                                    (*data / "counters" / "cupti.txt").string()}));
  const auto give_up = std::chrono::steady_clock::now() + kTryFor;
  while (std::chrono::steady_clock::now() < give_up) {
    const auto text = tool.poll();
    if (!text) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      continue;
    }
    GPOEO_TRY(const std::string said, *text);
    const auto json = nlohmann::json::parse(said, nullptr, false);
    if (!json.is_object()) return make_error(ErrorKind::kIo, "gpoeo-counters said nothing");
    const auto word = [&](const char* name) {
      const auto at = json.find(name);
      return at != json.end() && at->is_string() ? at->get<std::string>() : std::string();
    };
    if (json.contains("error")) return make_error(ErrorKind::kNotSupported, word("error"));
    return fmt::format("{}, chip {}, {} passes", word("cupti"), word("chip"),
                       json["passes"].dump());
  }
  return make_error(ErrorKind::kTimeout, "gpoeo-counters did not come back");
}

CounterAdvice advise_on_counters(const gpu::Device& device, bool root, const TryCupti& try_it,
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
            .text = fmt::format("none: {}; CUPTI: the driver keeps counters "
                                "to administrators ({} says {} 1)",
                                no_gpm, params.string(), kAdminOnly),
            .cure =
                "put 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' into "
                "/etc/modprobe.d/nvidia-profiling.conf and reload the driver (or reboot); or "
                "run as root"};
  }
  const auto found = try_it(device);
  std::string text =
      found
          ? fmt::format("CUPTI PM sampling, from a process beside the job: {} ({})", *found, no_gpm)
          : fmt::format("none, unless the job brings a libcupti that can: {} ({})",
                        found.error().text, no_gpm);
  if (!restricted) text += fmt::format("; {} does not say who may read counters", params.string());
  return {.ok = true, .text = std::move(text), .cure = {}};
}

}  // namespace gpoeo::app
