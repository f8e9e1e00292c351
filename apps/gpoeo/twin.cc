// SPDX-License-Identifier: Apache-2.0
// `gpoeo twin`: the simulated GPUs, for people who want to try or test an energy tool without one.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "backend.h"
#include "base/log.h"
#include "control/child.h"
#include "twin/device_spec.h"
#include "twin/job_catalog.h"
#include "verb.h"

namespace gpoeo::app {
namespace {

struct TwinOptions {
  std::string device;
  std::string name;
  unsigned cards = 1;
  double speed = 1.0;
  bool json = false;
  bool force = false;
  std::vector<std::string> command;  // of exec
};

int list(const TwinOptions& options) {
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

int show(const TwinOptions& options) {
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

Result<std::unique_ptr<twin::Segment>> make_segment(const TwinOptions& options,
                                                    const std::string& name) {
  GPOEO_TRY(const auto device, twin::find_device(options.device));
  twin::SegmentOptions segment;
  segment.cards.assign(options.cards, device);
  segment.speed = options.speed;
  return twin::Segment::create(name, segment);
}

// What a shell must set so that any NVML client sees the twin.
Result<control::Child::Environment> twin_environment(const twin::Segment& segment) {
  GPOEO_TRY(const std::string library, twin_library());
  const std::string folder = std::filesystem::path(library).parent_path().string();
  const char* before = std::getenv("LD_LIBRARY_PATH");
  return control::Child::Environment{
      {twin::kSegmentEnvironment, segment.path().string()},
      {"LD_LIBRARY_PATH", before != nullptr && *before != '\0' ? folder + ":" + before : folder}};
}

int up(const TwinOptions& options) {
  const std::string name = options.name.empty() ? options.device : options.name;
  const auto segment = make_segment(options, name);
  if (!segment) return fail(segment.error(), kExitUsage);
  const auto variables = twin_environment(**segment);
  if (!variables) return fail(variables.error(), kExitOwnFailure);
  for (const auto& [variable, value] : *variables) fmt::print("export {}='{}'\n", variable, value);
  log::info("twin '{}' is up (simulated); 'gpoeo twin down {}' removes it", name, name);
  return kExitOk;
}

int down(const TwinOptions& options) {
  if (Status removed = twin::Segment::remove(options.name, options.force); !removed) {
    return fail(removed.error(), kExitUsage);
  }
  return kExitOk;
}

// A command that sees a twin of its own for as long as it runs.
int exec(const TwinOptions& options) {
  if (options.command.empty()) {
    return fail({ErrorKind::kInvalid, "no command: gpoeo twin exec a100 -- python client.py"},
                kExitUsage);
  }
  const std::string name = fmt::format("exec-{}", ::getpid());
  auto segment = make_segment(options, name);
  if (!segment) return fail(segment.error(), kExitUsage);
  int code = kExitOwnFailure;
  if (const auto variables = twin_environment(**segment); !variables) {
    code = fail(variables.error(), kExitOwnFailure);
  } else if (auto child = control::Child::start(options.command, *variables); !child) {
    code = fail(child.error(),
                child.error().kind == ErrorKind::kNotFound ? kExitNotFound : kExitNotExecutable);
  } else {
    for (;;) {
      const auto wake = child->wait(std::chrono::hours(1));
      if (wake.kind == control::Wake::Kind::kSignal && !wake.from_terminal)
        child->forward(wake.signal);
      if (wake.kind != control::Wake::Kind::kExited) continue;
      code = wake.exit.code;
      break;
    }
  }
  const std::string path = (*segment)->path().string();
  segment->reset();
  if (Status removed = twin::Segment::remove(path, /*force=*/true); !removed) {
    log::warning("{}", removed.error().text);
  }
  return code;
}

}  // namespace

void add_twin(CLI::App& root, Invocation& invocation) {
  auto* twin = root.add_subcommand("twin", "Simulated GPUs: list, show, up, down, exec");
  twin->require_subcommand(1);
  auto options = std::make_shared<TwinOptions>();
  const auto set_action = [&invocation, options](CLI::App* verb,
                                                 int (*action)(const TwinOptions&)) {
    verb->callback([&invocation, options, action] {
      invocation.action = [options, action] { return action(*options); };
    });
  };
  const auto add_making_options = [&](CLI::App* verb) {
    verb->add_option("device", options->device, "A device of 'gpoeo twin list', or a device file")
        ->required();
    verb->add_option("--cards", options->cards, "How many of them")
        ->check(CLI::Range(1U, twin::kMaxCards));
    verb->add_option("--speed", options->speed, "Simulated seconds per second")
        ->check(CLI::Range(0.001, 10000.0));
  };
  auto* list_verb =
      twin->add_subcommand("list", "Devices, the jobs they can run, and twins that are up");
  list_verb->add_flag("--json", options->json, "Print JSON");
  set_action(list_verb, list);

  auto* show_verb = twin->add_subcommand("show", "What a simulated device is like");
  show_verb->add_option("device", options->device, "A device, or a device file")->required();
  show_verb->add_flag("--json", options->json, "Print JSON");
  set_action(show_verb, show);

  auto* up_verb =
      twin->add_subcommand("up", "Make a twin that several programs share; prints its variables");
  add_making_options(up_verb);
  up_verb->add_option("--name", options->name, "Its name (default: the device's)");
  up_verb->footer("Example: eval \"$(gpoeo twin up a100)\"; gpoeo monitor");
  set_action(up_verb, up);

  auto* down_verb = twin->add_subcommand("down", "Remove a twin that is up");
  down_verb->add_option("name", options->name, "Its name")->required();
  down_verb->add_flag("--force", options->force, "Even while programs use it");
  set_action(down_verb, down);

  auto* exec_verb = twin->add_subcommand("exec", "Run any NVML client on a twin of its own");
  add_making_options(exec_verb);
  exec_verb->prefix_command();
  exec_verb->footer("Example: gpoeo twin exec a100 -- python3 client.py");
  exec_verb->callback([&invocation, options, exec_verb] {
    options->command = given_command(*exec_verb, invocation);
    invocation.action = [options] { return exec(*options); };
  });
}

}  // namespace gpoeo::app
