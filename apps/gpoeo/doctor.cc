// SPDX-License-Identifier: Apache-2.0
// `gpoeo doctor`: what this machine can do, what is missing, and the one-line cure. Read-only.
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <nlohmann/json.hpp>

#include "backend.h"
#include "counter_advice.h"
#include "settings.h"
#include "telemetry/energy_meter.h"
#include "telemetry/sampler.h"
#include "twin/data_files.h"
#include "verb.h"

namespace gpoeo::app {
namespace {

struct DoctorOptions {
  BackendOptions backend;
  std::optional<std::string> gpus;
  bool json = false;
  bool quick = false;
};

// What was looked at and what came of it. A problem has a cure.
struct Finding {
  std::string subject;
  bool ok = true;
  std::string text;
  std::string cure;
};

Finding check_rights(const Backend& backend) {
  Finding f{.subject = "rights", .ok = true, .text = {}, .cure = {}};
  if (backend.simulated()) {
    f.text = "a twin lets its owner set clocks";
  } else if (::geteuid() == 0) {
    f.text = "root: clocks may be set (in a container this also needs the SYS_ADMIN capability)";
  } else {
    f.ok = false;
    f.text = "not root: NVML refuses to set clocks, so 'run' measures only";
    f.cure = "sudo -E gpoeo run -- ...";
  }
  return f;
}

Finding check_state_dir() {
  const auto dir = control::default_state_dir();
  const auto journal = control::Journal::open(dir);
  Finding f{.subject = "journal", .ok = journal.has_value(), .text = {}, .cure = {}};
  if (!journal) {
    f.text = journal.error().text;
    f.cure = "name another folder in GPOEO_STATE_DIR";
    return f;
  }
  const auto left = journal->list();
  f.ok = left.empty();
  f.text = left.empty()
               ? fmt::format("{} is ready, nothing left to restore", dir.string())
               : fmt::format("{} GPU(s) have clocks set by a gpoeo that may be gone", left.size());
  if (!left.empty()) f.cure = "gpoeo reset";
  return f;
}

Finding check_settings() {
  const auto settings = Settings::load();
  Finding f{.subject = "configuration", .ok = settings.has_value(), .text = {}, .cure = {}};
  if (!settings) {
    f.text = settings.error().text;
    f.cure = "mend or remove that line";
    return f;
  }
  f.text = settings->files_read().empty() ? "no file; built-in defaults" : "";
  for (const auto& file : settings->files_read()) f.text += (f.text.empty() ? "" : ", ") + file;
  return f;
}

Finding check_twin() {
  const auto library = twin_library();
  const auto data = twin::data_directory();
  Finding f{.subject = "twin", .ok = library && data, .text = {}, .cure = {}};
  if (f.ok) {
    f.text = fmt::format("{}, data in {}", *library, data->string());
  } else {
    f.text = library ? data.error().text : library.error().text;
    f.cure = "only needed for --twin; build the project or install its data";
  }
  return f;
}

Finding check_counters(const gpu::Device& device, std::size_t gpus) {
  CounterAdvice advice = advise_on_counters(device, ::geteuid() == 0, &try_cupti);
  return {.subject = gpus == 1 ? "counters" : fmt::format("counters {}", device.identity().index),
          .ok = advice.ok,
          .text = std::move(advice.text),
          .cure = std::move(advice.cure)};
}

// Power samples against the energy counter over a few seconds.
telemetry::SourceChoice compare_energy(gpu::Device& device, Clock& clock) {
  telemetry::Sampler sampler(device, clock);
  telemetry::EnergyMeter meter(sampler.history());
  const StopFlag never;
  const Instant until = clock.now() + std::chrono::seconds(6);
  sampler.request_energy_mark();
  while (clock.now() < until && !meter.choice().final) {
    const Instant next = sampler.poll(clock.now());
    meter.update();
    clock.sleep_until(std::min(next, until), never);
  }
  return meter.choice();
}

nlohmann::json gpu_json(gpu::Device& device, const std::optional<telemetry::SourceChoice>& energy) {
  const auto& id = device.identity();
  const auto& capabilities = device.capabilities();
  nlohmann::json readings, controls;
  for (int r = 0; r < static_cast<int>(gpu::Reading::kCount); ++r) {
    const auto reading = static_cast<gpu::Reading>(r);
    readings[std::string(to_string(reading))] = to_string(capabilities[reading]);
  }
  for (int c = 0; c < static_cast<int>(gpu::Control::kCount); ++c) {
    const auto control = static_cast<gpu::Control>(c);
    controls[std::string(to_string(control))] = to_string(capabilities[control]);
  }
  nlohmann::json clocks = nlohmann::json::array();
  for (const auto& entry : capabilities.clocks) {
    clocks.push_back({{"mem_clock_mhz", to_mhz(entry.memory)},
                      {"sm_clocks", entry.sm.size()},
                      {"sm_min_mhz", entry.sm.empty() ? 0 : to_mhz(entry.sm.front())},
                      {"sm_max_mhz", entry.sm.empty() ? 0 : to_mhz(entry.sm.back())}});
  }
  nlohmann::json j{{"index", id.index},         {"uuid", id.uuid},
                   {"name", id.name},           {"pci_bus_id", id.pci_bus_id},
                   {"simulated", id.simulated}, {"readings", readings},
                   {"controls", controls},      {"clocks", clocks}};
  if (energy) {
    j["energy"] = {{"source", telemetry::to_string(energy->source)},
                   {"samples_over_counter", energy->agreement ? nlohmann::json(*energy->agreement)
                                                              : nlohmann::json(nullptr)},
                   {"compared_s", energy->compared_over.value()},
                   {"reason", energy->reason}};
  }
  return j;
}

void print_gpu(const nlohmann::json& gpu) {
  fmt::print("GPU {}: {}{} {} {}\n", gpu["index"].get<int>(), gpu["name"].get<std::string>(),
             gpu["simulated"].get<bool>() ? " (SIMULATED)" : "", gpu["uuid"].get<std::string>(),
             gpu["pci_bus_id"].get<std::string>());
  for (const char* group : {"readings", "controls"}) {
    for (const auto& [name, support] : gpu[group].items()) {
      fmt::print("  {:<24} {}\n", name, support.get<std::string>());
    }
  }
  for (const auto& c : gpu["clocks"]) {
    fmt::print("  memory {:.0f} MHz: {} SM clocks, {:.0f} to {:.0f} MHz\n",
               c["mem_clock_mhz"].get<double>(), c["sm_clocks"].get<std::size_t>(),
               c["sm_min_mhz"].get<double>(), c["sm_max_mhz"].get<double>());
  }
  if (gpu.contains("energy")) {
    fmt::print("  energy from the {}: {}\n", gpu["energy"]["source"].get<std::string>(),
               gpu["energy"]["reason"].get<std::string>());
  }
}

int doctor(const DoctorOptions& options) {
  nlohmann::json report{{"gpus", nlohmann::json::array()}, {"findings", nlohmann::json::array()}};
  std::vector<Finding> findings = {check_settings(), check_state_dir(), check_twin()};
  auto backend = open_backend(options.backend);
  if (!backend) {
    findings.push_back(
        {"driver", false, backend.error().text,
         "install NVIDIA's driver, or try a simulated GPU: gpoeo doctor --twin a100"});
  } else {
    report["driver_version"] = backend->driver->version();
    report["simulated"] = backend->simulated();
    findings.push_back({"driver", true,
                        fmt::format("{}, version {}, {} GPU(s){}", backend->ref.library,
                                    backend->driver->version(), backend->driver->device_count(),
                                    backend->simulated() ? " (SIMULATED)" : ""),
                        ""});
    findings.push_back(check_rights(*backend));
    auto gpus = open_gpus(*backend, options.gpus, gpu::Access::kReadOnly);
    if (!gpus) {
      findings.push_back({"GPUs", false, gpus.error().text, ""});
    } else {
      for (const auto& device : gpus->devices) {
        std::optional<telemetry::SourceChoice> energy;
        if (!options.quick) energy = compare_energy(*device, *backend->clock);
        report["gpus"].push_back(gpu_json(*device, energy));
        findings.push_back(check_counters(*device, gpus->devices.size()));
      }
      if (!gpus->warning.empty()) findings.push_back({"GPU order", false, gpus->warning, ""});
    }
  }
  bool all_well = true;
  for (const auto& f : findings) {
    all_well = all_well && f.ok;
    report["findings"].push_back(
        {{"subject", f.subject}, {"ok", f.ok}, {"text", f.text}, {"cure", f.cure}});
  }
  if (options.json) {
    fmt::print("{}\n", report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return all_well ? kExitOk : 1;
  }
  for (const auto& gpu : report["gpus"]) print_gpu(gpu);
  for (const auto& f : findings) {
    fmt::print("{} {:<14} {}\n", f.ok ? "ok  " : "LOOK", f.subject, f.text);
    if (!f.ok && !f.cure.empty()) fmt::print("     {:<14} {}\n", "cure:", f.cure);
  }
  return all_well ? kExitOk : 1;
}

}  // namespace

void add_doctor(CLI::App& root, Invocation& invocation) {
  auto* verb =
      root.add_subcommand("doctor", "What this machine can do, what is missing, and the cure");
  auto options = std::make_shared<DoctorOptions>();
  verb->add_option("--gpus", options->gpus, "all, or a list of indices, UUIDs or PCI ids");
  verb->add_option("--twin", options->backend.twin,
                   "Simulated GPU (a device, or a twin that is up)");
  verb->add_flag("--quick", options->quick, "Skip the few seconds that compare energy sources");
  verb->add_flag("--json", options->json, "Print JSON");
  verb->footer("Exit 0: all is well; 1: something needs a look.\nExample: gpoeo doctor");
  verb->callback(
      [&invocation, options] { invocation.action = [options] { return doctor(*options); }; });
}

}  // namespace gpoeo::app
