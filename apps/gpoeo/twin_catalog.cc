// SPDX-License-Identifier: Apache-2.0
// `gpoeo twin list` and `show`.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "twin/device_spec.h"
#include "twin/job_catalog.h"
#include "twin/segment.h"
#include "twin_verbs.h"
#include "verb.h"

namespace gpoeo::app {

int twin_list(const TwinOptions& options) {
  const auto names = twin::device_names();
  if (!names) return fail(names.error(), kExitOwnFailure);
  nlohmann::json report{{"devices", nlohmann::json::array()}, {"up", nlohmann::json::array()}};
  for (const auto& name : *names) {
    const auto device = twin::find_device(name);
    if (!device) return fail(device.error(), kExitOwnFailure);
    const auto jobs = twin::jobs_for(name);
    nlohmann::json job_list = nlohmann::json::array();
    if (jobs) {
      for (const auto& job : *jobs) {
        job_list.push_back(
            {{"name", job.name}, {"response", job.measured ? "measured" : "analytic"}});
      }
    }
    report["devices"].push_back({{"name", name}, {"gpu", device->name.data()}, {"jobs", job_list}});
  }
  if (const auto running = twin::Segment::list()) {
    for (const auto& twin : *running) {
      report["up"].push_back({{"name", twin.name},
                              {"path", twin.path.string()},
                              {"devices", twin.devices},
                              {"speed", twin.speed},
                              {"in_use", twin.in_use}});
    }
  }
  if (options.json) {
    fmt::print("{}\n", report.dump(2));
    return kExitOk;
  }
  for (const auto& device : report["devices"]) {
    fmt::print("{:<12} {}\n", device["name"].get<std::string>(), device["gpu"].get<std::string>());
    for (const char* kind : {"measured", "analytic"}) {
      std::string line;
      for (const auto& job : device["jobs"]) {
        if (job["response"] == kind) line += " " + job["name"].get<std::string>();
      }
      if (!line.empty()) fmt::print("  {:<10}{}\n", kind, line);
    }
  }
  for (const auto& twin : report["up"]) {
    fmt::print("up: {} ({}), {} card(s), speed {:g}\n", twin["name"].get<std::string>(),
               twin["path"].get<std::string>(), twin["devices"].size(),
               twin["speed"].get<double>());
  }
  return kExitOk;
}

int twin_show(const TwinOptions& options) {
  const auto device = twin::find_device(options.device);
  if (!device) return fail(device.error(), kExitUsage);
  const auto& d = *device;
  nlohmann::json memory = nlohmann::json::array();
  for (int m = 0; m < d.memory_clock_count; ++m) memory.push_back(d.memory_mhz[m]);
  nlohmann::json readings, controls;
  for (int r = 0; r < static_cast<int>(gpu::Reading::kCount); ++r) {
    const auto reading = static_cast<gpu::Reading>(r);
    readings[std::string(gpu::to_string(reading))] = gpu::to_string(d.support(reading));
  }
  for (int c = 0; c < static_cast<int>(gpu::Control::kCount); ++c) {
    const auto control = static_cast<gpu::Control>(c);
    controls[std::string(gpu::to_string(control))] = gpu::to_string(d.support(control));
  }
  const nlohmann::json j{
      {"name", d.key.data()},
      {"gpu", d.name.data()},
      {"simulated", true},
      {"sm_clocks", d.sm_clock_count},
      {"sm_min_mhz", d.sm_mhz[0]},
      {"sm_max_mhz", d.sm_mhz[d.sm_clock_count - 1]},
      {"sm_default_mhz", d.sm_mhz[d.default_sm]},
      {"mem_clocks_mhz", memory},
      {"power_limit_w",
       {{"min", d.limit_min_w}, {"default", d.limit_default_w}, {"max", d.limit_max_w}}},
      {"idle_w", d.idle_w},
      {"power_sample_ms", static_cast<double>(d.power_samples.period_ns) * 1e-6},
      {"power_sample_window_ms", static_cast<double>(d.power_samples.window_ns) * 1e-6},
      {"energy_tick_ms", static_cast<double>(d.energy_tick_ns) * 1e-6},
      {"readings", readings},
      {"controls", controls}};
  if (options.json) {
    fmt::print("{}\n", j.dump(2));
    return kExitOk;
  }
  fmt::print("{} (simulated {})\n", d.key.data(), d.name.data());
  fmt::print("  SM clocks     {} from {} to {} MHz, {} by default\n", d.sm_clock_count, d.sm_mhz[0],
             d.sm_mhz[d.sm_clock_count - 1], d.sm_mhz[d.default_sm]);
  fmt::print("  memory clocks {} MHz\n", memory.dump());
  fmt::print("  power limit   {:.0f} to {:.0f} W, {:.0f} by default; idle {:.0f} W\n",
             d.limit_min_w, d.limit_max_w, d.limit_default_w, d.idle_w);
  fmt::print("  power samples each {:g} ms over {:g} ms; energy counter moves each {:g} ms\n",
             j["power_sample_ms"].get<double>(), j["power_sample_window_ms"].get<double>(),
             j["energy_tick_ms"].get<double>());
  for (const auto* group : {&readings, &controls}) {
    for (const auto& [name, support] : group->items()) {
      if (support != "yes") fmt::print("  {:<24} {}\n", name, support.get<std::string>());
    }
  }
  fmt::print("  The device file says where each number comes from.\n");
  return kExitOk;
}

}  // namespace gpoeo::app
