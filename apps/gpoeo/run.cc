// SPDX-License-Identifier: Apache-2.0
// `gpoeo run -- command`: starts the job, measures it, finds and holds the clock that saves most
// within the limit, gives the clocks back, reports. The job is started last and never waits for us.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <future>
#include <memory>
#include <thread>

#include "apps_config.h"
#include "asked_setting.h"
#include "backend.h"
#include "base/log.h"
#include "control/child.h"
#include "control/controller.h"
#include "control/model_prior.h"
#include "control/outside_counters.h"
#include "control/problem.h"
#include "control/ring_source.h"
#include "injection.h"
#include "job_process.h"
#include "progress_display.h"
#include "report/render.h"
#include "ring_folder.h"
#include "run_options.h"
#include "twin/data_files.h"
#include "twin_truth.h"
#include "verb.h"

namespace gpoeo::app {
namespace {

// What the control thread and the main thread share.
struct Switches {
  StopFlag stop;                       // the job is over
  std::atomic<int> release_signal{0};  // this signal came: clocks back now
};

// All that the control loop works on; built before the job starts.
struct Prepared {
  Backend backend;
  OpenGpus gpus;
  std::unique_ptr<control::Journal> journal;
  std::unique_ptr<policy::Policy> policy;
  std::unique_ptr<control::RingProgress> progress;
  control::ControllerInput input;
};

// Read-only when clocks are not to be set; else as far as rights go. The reason is for the user.
Result<std::string> guard_clocks(Prepared& prepared, const RunOptions& options) {
  if (options.dry_run) return "--dry-run";
  if (options.strict && !prepared.backend.simulated() && ::geteuid() != 0) {
    return make_error(ErrorKind::kNoPermission,
                      "--strict: NVML lets only root set clocks; run with sudo -E");
  }
  if (const Status alike = control::check_alike(prepared.gpus.devices); !alike) {
    if (options.strict) return with_context("--strict", alike.error());
    return alike.error().text;
  }
  auto journal = take_guards(prepared.backend, prepared.gpus, prepared.input.gpus);
  if (!journal) {
    if (options.strict) return std::unexpected(journal.error());
    return journal.error().text;
  }
  prepared.journal = std::move(*journal);
  return "";
}

// Without a launch for so long on a busy GPU, power traces are compared instead.
constexpr auto kTracesAfter = std::chrono::seconds(20);

Result<model::Predictor> load_fitting(const std::string& file, const model::Device& device) {
  GPOEO_TRY(model::Predictor predictor, model::Predictor::load(file));
  GPOEO_TRY_STATUS(predictor.check_fits(device));
  return predictor;
}

// The shipped model of this card, if there is one and it is good enough to start from. Without one
// the search measures more; the job never waits for it.
void use_model(control::ControllerInput& input, const gpu::Device& device,
               const std::string& which) {
  if (which == "none") return;
  const auto card = control::modelled_card(device);
  const auto data = twin::data_directory();
  if (!card || !data) return;
  const auto predictor = which == "auto"
                             ? model::Predictor::load_for(card->device, *data / "models")
                             : load_fitting(which, card->device);
  if (!predictor) {
    log::warning("no model, the search only measures: {}", predictor.error().text);
    return;
  }
  const double error = predictor->facts().cv_time_error;
  if (error > control::kLargestModelError) {
    log::debug("the model '{}' errs by {:.0f} %: not used", predictor->facts().device, 100 * error);
    return;
  }
  input.predict =
      control::predict_with(std::make_shared<const model::Predictor>(*predictor), *card);
}

// CUPTI from a process of our own; a twin's job tells its counters itself.
control::NamedSource counters_by_cupti(const Prepared& prepared) {
  const bool simulated = std::ranges::any_of(
      prepared.gpus.devices, [](const auto& device) { return device->identity().simulated; });
  if (simulated)
    return {"the twin's job", std::make_unique<control::RingSource>(*prepared.progress)};
  const auto data = twin::data_directory();
  control::OutsideCounterOptions options{
      .program = counters_program(),
      .metrics_file = data ? *data / "counters" / "cupti.txt" : std::filesystem::path(),
      .gpus = {}};
  for (const auto& device : prepared.gpus.devices) options.gpus.push_back(device->identity().uuid);
  return {"CUPTI beside the job",
          std::make_unique<control::OutsideCounters>(*prepared.progress, std::move(options))};
}

Result<std::unique_ptr<Prepared>> prepare(const RunOptions& options, const std::string& ring_dir) {
  auto prepared = std::make_unique<Prepared>();
  GPOEO_TRY(prepared->policy, policy::make_policy(options.policy));
  GPOEO_TRY(Backend backend, open_backend(options.backend));
  // Backend cannot be assigned, since it cleans up behind itself.
  std::destroy_at(&prepared->backend);
  std::construct_at(&prepared->backend, std::move(backend));
  const gpu::Access access = options.dry_run ? gpu::Access::kReadOnly : gpu::Access::kControl;
  GPOEO_TRY(prepared->gpus, open_gpus(prepared->backend, options.gpus, access));

  for (const auto& device : prepared->gpus.devices) {
    GPOEO_TRY(const std::string told, check_asked_setting(options.policy, device->capabilities()));
    if (!told.empty()) log::info("{}", told);
  }

  auto& input = prepared->input;
  for (const auto& device : prepared->gpus.devices) {
    input.gpus.push_back({.device = device.get(), .guard = {}, .trace = {}});
  }
  if (!options.trace_file.empty()) {
    GPOEO_TRY(auto trace, telemetry::TraceWriter::create(options.trace_file));
    input.gpus.front().trace.emplace(std::move(trace));
  }
  GPOEO_TRY(input.measure_only_reason, guard_clocks(*prepared, options));
  prepared->progress = std::make_unique<control::RingProgress>(ring_dir);
  input.clock = prepared->backend.clock;
  input.progress = prepared->progress.get();
  input.policy = prepared->policy.get();
  input.max_slowdown = options.max_slowdown;
  input.traces_after = kTracesAfter;
  // A model is of one kind of card.
  if (control::check_alike(prepared->gpus.devices)) {
    use_model(input, *prepared->gpus.devices.front(), options.model);
  }
  input.objective = options.objective;
  input.cost_eta = options.cost_eta;
  GPOEO_TRY(input.counters.use, control::parse_counter_use(options.counters));
  input.counters.by_cupti.push_back(counters_by_cupti(*prepared));
  return prepared;
}

report::Session control_job(Prepared& prepared, Switches& switches, ProgressDisplay& display) {
  Clock& clock = *prepared.backend.clock;
  control::Controller controller(std::move(prepared.input));
  controller.on_event([&](const std::string& line) { display.event(line); });
  while (!switches.stop.requested()) {
    if (const int signal = switches.release_signal.load(); signal != 0) {
      controller.release(fmt::format("signal {}", ::strsignal(signal)));
    }
    const Instant next = controller.step();
    display.update(controller.live_status());
    clock.sleep_until(next, switches.stop);
  }
  report::Session session = controller.finish();
  display.clear();
  return session;
}

Status publish(const report::Session& session, const RunOptions& options) {
  if (options.json) {
    std::fputs(report::to_json(session).c_str(), stdout);
    std::fflush(stdout);
  } else if (!options.quiet) {
    std::fputs(report::to_text(session).c_str(), stderr);
  }
  if (options.report_file.empty()) return {};
  return write_output_file(options.report_file, report::to_json(session));
}

// When no process of the job has made a ring.
std::string why_no_launch_log(const Injection& injection) {
  return "never started: " + (injection.library.empty()
                                  ? injection.why_not
                                  : "the job made no CUDA call, or a tool in it (nsys, ncu) set "
                                    "CUDA_INJECTION64_PATH for itself");
}

bool any_restore_failed(const report::Session& session) {
  return std::ranges::any_of(session.gpus, [](const auto& gpu) { return gpu.restore_failed; });
}

void announce(const Prepared& prepared, const RunOptions& options) {
  if (options.quiet) return;
  const auto& first = prepared.gpus.devices.front()->identity();
  log::info("{}{} {} ({}), limit {:.3g} % more time (read from '{}'), policy {}",
            prepared.backend.simulated() ? "[simulated] " : "",
            prepared.gpus.devices.size() == 1
                ? "GPU"
                : fmt::format("{} GPUs, first", prepared.gpus.devices.size()),
            first.name, prepared.gpus.source, 100 * options.max_slowdown, options.max_slowdown_text,
            options.policy);
  if (!prepared.gpus.warning.empty()) log::warning("{}", prepared.gpus.warning);
  if (!prepared.input.measure_only_reason.empty()) {
    log::info("measuring only, no clock will be set: {}", prepared.input.measure_only_reason);
  }
}

int run(const RunOptions& options) {
  const control::BlockedSignals signals;  // first: the driver library may start threads
  if (!options.report_file.empty()) {
    // Found out now, not when the job is over.
    const auto folder = std::filesystem::absolute(options.report_file).parent_path();
    if (::access(folder.c_str(), W_OK) != 0) {
      return fail(errno_error("--report " + options.report_file, errno).error(), kExitUsage);
    }
  }
  const auto rings = RingFolder::create();
  if (!rings) return fail(rings.error(), kExitOwnFailure);
  auto made = prepare(options, rings->path());
  if (!made) return fail(made.error(), kExitOwnFailure);
  Prepared& prepared = **made;
  announce(prepared, options);

  auto guardian = options.no_guardian
                      ? Result<std::optional<Guardian>>{}
                      : start_guardian(prepared.backend, prepared.gpus,
                                       prepared.input.measure_only_reason.empty(), rings->path());
  if (!guardian) return fail(guardian.error(), kExitOwnFailure);
  const Instant started = prepared.backend.clock->now();
  const Injection injection = choose_injection(!options.no_inject, options.command);
  if (injection.tell && !options.quiet) log::info("no launch log: {}", injection.why_not);
  auto child = control::Child::start(
      options.command, job_environment(prepared.backend, rings->path(), injection), signals);
  if (!child) {
    if (*guardian) (*guardian)->dismiss();
    return fail(child.error(), exit_code_for_start(child.error()));
  }
  if (*guardian) (*guardian)->watch_job(child->pid());

  Switches switches;
  ProgressDisplay display(options.quiet, prepared.backend.simulated());
  std::promise<report::Session> promise;
  auto future = promise.get_future();
  std::thread control([&] { promise.set_value(control_job(prepared, switches, display)); });

  const control::ExitStatus exit = wait_for_job(
      *child, {.ending_signal = [&](int signal) { switches.release_signal.store(signal); }});
  switches.stop.request();
  if (future.wait_for(kRestorePatience) != std::future_status::ready) {
    log::error(
        "the driver has not answered for {} s: the clocks may still be set; the guardian goes "
        "on trying, and 'gpoeo reset' restores them",
        kRestorePatience.count());
    std::fflush(stdout);
    // The control thread hangs inside the driver and cannot be joined: leave without unwinding.
    ::_exit(options.strict ? kExitOwnFailure : exit.code);
  }
  control.join();
  report::Session session = future.get();
  session.gpoeo_version = GPOEO_VERSION;
  session.driver_version = prepared.backend.driver->version();
  session.command = fmt::format("{}", fmt::join(options.command, " "));
  session.exit_code = exit.code;
  if (session.launch_log.empty()) session.launch_log = why_no_launch_log(injection);
  if (prepared.backend.simulated()) {
    std::vector<unsigned> cards;
    for (const auto& device : prepared.gpus.devices) cards.push_back(device->identity().index);
    session.truth = twin_truth(*prepared.backend.segment, cards, started);
  }

  const bool failed = any_restore_failed(session);
  if (*guardian && !failed) (*guardian)->dismiss();
  if (Status shown = publish(session, options); !shown) log::error("{}", shown.error().text);
  if (failed) {
    log::error("clocks were not restored; {}'gpoeo reset' does it by hand",
               *guardian ? "the guardian goes on trying, and " : "");
    if (options.strict) return kExitOwnFailure;
  }
  return exit.code;
}

}  // namespace

void add_run(CLI::App& root, Invocation& invocation) {
  auto* verb = root.add_subcommand("run", "Run a job at the clocks that save most energy");
  verb->alias("exec");
  auto options = std::make_shared<RunOptions>();
  declare_run_options(*verb, *options);
  verb->callback([&invocation, verb, options] {
    options->command = given_command(*verb, invocation);
    invocation.action = [verb, options] {
      if (Status complete = complete_run_options(*verb, *options); !complete) {
        return fail(complete.error(), kExitUsage);
      }
      return run(*options);
    };
  });
}

}  // namespace gpoeo::app
