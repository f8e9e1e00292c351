// SPDX-License-Identifier: Apache-2.0
// `gpoeo measure -- command`: starts the job, takes it through the clocks, writes what it cost at
// each into a response table, ends the job. A job that ends by itself is started again.
#include "measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "control/problem.h"
#include "control/sweep.h"
#include "job_process.h"
#include "measure_jobs.h"
#include "measure_table.h"
#include "response/table_writer.h"
#include "ring_folder.h"
#include "verb.h"

namespace gpoeo::app {
namespace {

constexpr double kLowestShare = 1.0 / 3;  // of the highest SM clock, where --points begins

struct Prepared {
  std::unique_ptr<control::Journal> journal;
  OpenGpus gpus;
  std::unique_ptr<control::Sweep> sweep;
  SweepTable table;
  double seconds = 0;  // about how long it takes
};

Result<Hertz> supported(const std::vector<Hertz>& clocks, double mhz) {
  for (const Hertz f : clocks)
    if (std::abs(to_mhz(f) - mhz) < 0.5) return f;
  const auto nearest =
      std::ranges::min_element(clocks, {}, [&](Hertz f) { return std::abs(to_mhz(f) - mhz); });
  return make_error(ErrorKind::kInvalid,
                    fmt::format("--clocks {:g}: the GPU has no such SM clock; the nearest is {:g}",
                                mhz, to_mhz(*nearest)));
}

// Of those the card has at one memory clock; `asked` were given by name.
Result<std::vector<Hertz>> chosen_clocks(const MeasureOptions& options,
                                         const std::vector<Hertz>& clocks) {
  if (options.clocks == "all") return clocks;
  std::vector<Hertz> chosen;
  if (!options.clocks.empty()) {
    for (const std::string_view text : split(options.clocks, ',')) {
      const auto mhz = parse_double(trim(text));
      if (!mhz)
        return make_error(
            ErrorKind::kInvalid,
            fmt::format("--clocks: '{}' is no clock; write MHz, as 1410,1200, or all", text));
      GPOEO_TRY(const Hertz clock, supported(clocks, *mhz));
      if (std::ranges::find(chosen, clock) == chosen.end()) chosen.push_back(clock);
    }
    return chosen;
  }
  const double low = kLowestShare * clocks.back().value(), high = clocks.back().value();
  for (int i = 0; i < options.points; ++i) {
    const double f = low + (high - low) * i / (options.points - 1);
    const Hertz nearest =
        *std::ranges::min_element(clocks, {}, [&](Hertz c) { return std::abs(c.value() - f); });
    if (chosen.empty() || chosen.back() != nearest) chosen.push_back(nearest);
  }
  return chosen;
}

Result<std::vector<policy::ClockSetting>> settings_of(const MeasureOptions& options,
                                                      const policy::Problem& problem) {
  if (problem.sm_clocks.empty())
    return make_error(ErrorKind::kNotSupported, "this GPU does not list the clocks it supports");
  if (options.sweep != "sm" && problem.memory_gears.empty())
    return make_error(ErrorKind::kNotSupported,
                      fmt::format("--sweep {}: this GPU has one memory clock, or it cannot be set",
                                  options.sweep));
  std::vector<policy::ClockSetting> settings;
  if (options.sweep != "memory") {
    GPOEO_TRY(const auto clocks, chosen_clocks(options, problem.sm_clocks));
    for (const Hertz sm : clocks) settings.push_back({.sm = sm});
  }
  for (const policy::MemoryGear& gear : problem.memory_gears) {
    if (options.sweep == "sm") break;
    if (options.sweep == "memory") {
      settings.push_back({.memory = gear.memory});
      continue;
    }
    const auto clocks = chosen_clocks(options, gear.sm_clocks);
    if (!clocks) continue;  // the lowest memory clock goes with few SM clocks, maybe none of these
    for (const Hertz sm : *clocks) settings.push_back({.sm = sm, .memory = gear.memory});
  }
  return settings;
}

// How the table was made, for its head.
std::string command_line(const MeasureOptions& o) {
  return fmt::format(
      "gpoeo measure --sweep {} {} --repeats {} {} --seed {} -- {}", o.sweep,
      o.clocks.empty() ? fmt::format("--points {}", o.points) : "--clocks " + o.clocks, o.repeats,
      o.whole_runs ? "--whole-runs"
                   : fmt::format("--seconds-per-clock {:g} --soak {:g}", o.seconds, o.soak_s),
      o.seed, fmt::join(o.command, " "));
}

Result<Prepared> prepare(const MeasureOptions& options, Backend& backend) {
  Prepared prepared;
  GPOEO_TRY(prepared.gpus, open_gpus(backend, options.gpus, gpu::Access::kControl));
  GPOEO_TRY_STATUS(control::check_alike(prepared.gpus.devices));
  control::SweepInput input;
  input.clock = backend.clock;
  for (const auto& device : prepared.gpus.devices)
    input.gpus.push_back({.device = device.get(), .guard = {}, .trace = {}});
  auto journal = take_guards(backend, prepared.gpus, input.gpus);
  if (!journal) return with_context("measure has to set clocks", journal.error());
  prepared.journal = std::move(*journal);

  const gpu::Device& first = *prepared.gpus.devices.front();
  input.goal = {.least_iterations = 8,
                .least = Seconds(options.seconds),
                .longest = Seconds(10 * options.seconds),
                .precision = 0};
  input.whole_runs = options.whole_runs;
  input.soak = Seconds(options.soak_s);
  input.warm_up = Seconds(options.warm_up_s);
  prepared.sweep = std::make_unique<control::Sweep>(std::move(input));
  GPOEO_TRY(const auto settings, settings_of(options, prepared.sweep->choices()));
  auto order = control::sweep_order(settings, options.repeats, options.default_every, options.seed);
  constexpr double kSettling = 1.5;  // seconds, about
  prepared.seconds = 0;              // whole runs: nobody knows
  if (!options.whole_runs)
    prepared.seconds = options.warm_up_s + static_cast<double>(order.size()) *
                                               (options.seconds + options.soak_s + kSettling);

  SweepTable& table = prepared.table;
  table.workload = response::valid_workload_name(
      options.workload.empty() ? fmt::format("{}", fmt::join(options.command, " "))
                               : options.workload);
  table.made_by = command_line(options);
  table.gpu = fmt::format("{} ({}), driver {}", first.identity().name, first.identity().uuid,
                          backend.driver->version());
  table.simulated = backend.simulated();
  table.gpus = static_cast<unsigned>(prepared.gpus.devices.size());
  if (const auto limit = prepared.gpus.devices.front()->power_limit())
    table.power_limit_w = limit->value();
  for (const auto& entry : first.capabilities().clocks)
    table.memory_mhz.push_back(to_mhz(entry.memory));
  std::ranges::sort(table.memory_mhz, std::greater());
  table.windows = order.size();
  prepared.sweep->plan(std::move(order));
  return prepared;
}

Status write_table(const MeasureOptions& options, SweepTable table, const control::Sweep& sweep) {
  if (!sweep.complete())
    table.why_partial =
        sweep.why_stopped().empty() ? "still running, or killed" : sweep.why_stopped();
  const std::string text = to_table(table, sweep.points());
  std::error_code ignored;
  if (!std::filesystem::exists(options.output, ignored) ||
      std::filesystem::is_regular_file(options.output, ignored))
    return write_file_durably(options.output, text, 0644);
  return sweep.over() ? write_output_file(options.output, text) : Status{};
}

std::string duration(const Prepared& prepared) {
  if (prepared.seconds <= 0) return "a run of the job each";
  return fmt::format("about {:.0f} minutes", std::max(1.0, prepared.seconds / 60));
}

// A plain question, on the terminal and nowhere else.
Status ask(const MeasureOptions& options, const Prepared& prepared, const Backend& backend) {
  if (backend.simulated() || options.yes) return {};
  if (!::isatty(STDIN_FILENO) || !::isatty(STDERR_FILENO))
    return make_error(ErrorKind::kInvalid,
                      "measure sets the clocks of a real GPU and asks first, and there is no "
                      "terminal to ask on; give --yes if that is what you want");
  fmt::print(
      stderr,
      "{} GPU(s), first {}: {} windows at different clocks, {}, in which the job runs slower "
      "and whatever else uses the GPU does too. Go on? [y/N] ",
      prepared.gpus.devices.size(), prepared.table.gpu, prepared.table.windows, duration(prepared));
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") return {};
  return make_error(ErrorKind::kInvalid, "nothing was set");
}

Status check_options(const MeasureOptions& options) {
  if (options.command.empty() || options.command.front().empty())
    return make_error(ErrorKind::kInvalid,
                      "no command: gpoeo measure [options] --output table.csv -- python train.py");
  if (options.output.empty())
    return make_error(ErrorKind::kInvalid, "no --output: say where the table goes");
  std::error_code ignored;
  if (std::filesystem::is_regular_file(options.output, ignored) && !options.force)
    return make_error(
        ErrorKind::kInvalid,
        fmt::format("{} is there already; give another name, or --force", options.output));
  const auto folder = std::filesystem::absolute(options.output).parent_path();
  if (::access(folder.c_str(), W_OK) != 0) return errno_error("--output " + options.output, errno);
  return {};
}

}  // namespace

int measure(const MeasureOptions& options) {
  if (Status right = check_options(options); !right) return fail(right.error(), kExitUsage);
  const control::BlockedSignals signals;  // first: the driver library may start threads
  const auto rings = RingFolder::create();
  if (!rings) return fail(rings.error(), kExitOwnFailure);
  auto backend = open_backend(options.backend);
  if (!backend) return fail(backend.error(), kExitOwnFailure);
  auto prepared = prepare(options, *backend);
  if (!prepared) {
    const bool usage = prepared.error().kind == ErrorKind::kInvalid;
    return fail(prepared.error(), usage ? kExitUsage : kExitOwnFailure);
  }
  if (Status yes = ask(options, *prepared, *backend); !yes) return fail(yes.error(), kExitUsage);

  const char* label = backend->simulated() ? "[simulated] " : "";
  control::Sweep& sweep = *prepared->sweep;
  sweep.on_event([&](const std::string& line) {
    if (!options.quiet) log::info("{}{}", label, line);
  });
  sweep.on_points([&] {
    if (Status written = write_table(options, prepared->table, sweep); !written)
      log::error("{}", written.error().text);
  });
  auto guardian = start_guardian(*backend, prepared->gpus, /*sets_clocks=*/true, rings->path());
  if (!guardian) return fail(guardian.error(), kExitOwnFailure);
  if (!options.quiet)
    log::info("{}{}: {} windows, {}", label, prepared->table.gpu, sweep.windows(),
              duration(*prepared));

  const int code = run_jobs({.options = options,
                             .backend = *backend,
                             .sweep = sweep,
                             .rings = rings->path(),
                             .guardian = *guardian,
                             .signals = signals});
  const bool restored = sweep.finish();
  if (restored && *guardian) (*guardian)->dismiss();
  if (!restored)
    log::error("clocks were not restored; {}'gpoeo reset' does it by hand",
               *guardian ? "the guardian goes on trying, and " : "");
  if (sweep.points().empty()) {
    if (code == kExitOwnFailure) log::error("nothing was measured: {}", sweep.why_stopped());
    return code;
  }
  if (Status written = write_table(options, prepared->table, sweep); !written)
    return fail(written.error(), kExitOwnFailure);
  if (sweep.complete()) {
    if (!options.quiet)
      log::info("{}{}: {} windows; 'gpoeo measure --check {}' says what is in it", label,
                options.output, sweep.points().size(), options.output);
  } else {
    log::warning("{} is partial ({} of {} windows): {}", options.output, sweep.windows_done(),
                 sweep.windows(), sweep.why_stopped());
  }
  return restored ? code : kExitOwnFailure;
}

}  // namespace gpoeo::app
