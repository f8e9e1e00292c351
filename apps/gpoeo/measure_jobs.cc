// SPDX-License-Identifier: Apache-2.0
#include "measure_jobs.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <future>
#include <thread>

#include "base/log.h"
#include "control/progress.h"
#include "job_process.h"
#include "verb.h"

namespace gpoeo::app {
namespace {

// The job gets so long to end by itself when it was asked to.
constexpr auto kEndPatience = std::chrono::seconds(10);

// What the control thread and the main thread share.
struct Switches {
  StopFlag stop;  // the job is over
  std::atomic<int> signal{0};
  std::atomic<bool> sweep_over{false};
  std::promise<void> ready;     // the clocks of a whole run are set, or the sweep is over
  std::promise<void> finished;  // the control thread has nothing left to do
};

// One life of the job.
struct Life {
  bool swept = false;  // the sweep is over, and we ended the job
  int code = kExitOwnFailure;
  int signal = 0;
};

void control_sweep(control::Sweep& sweep, bool whole_runs, Clock& clock, Switches& switches) {
  if (whole_runs) sweep.begin_run();
  switches.ready.set_value();
  while (!switches.stop.requested()) {
    if (const int signal = switches.signal.load(); signal != 0)
      sweep.release(fmt::format("signal {}", ::strsignal(signal)));
    const Instant next = sweep.step();
    if (sweep.over()) switches.sweep_over.store(true);
    clock.sleep_until(next, switches.stop);
  }
  if (const int signal = switches.signal.load(); signal != 0)
    sweep.release(fmt::format("signal {}", ::strsignal(signal)));
}

// After a whole run: the readings that close it come within seconds.
void close_run(control::Sweep& sweep, Instant from, Instant to, Clock& clock) {
  const StopFlag never;
  while (!sweep.over() && !sweep.end_run(from, to)) clock.sleep_until(sweep.step(), never);
}

// Ends the job when the sweep is over: asked first, then not any more.
class JobEnder {
 public:
  explicit JobEnder(const Switches& switches) : switches_(switches) {}
  void operator()(const control::Child& child) {
    if (!switches_.sweep_over.load()) return;
    const auto now = std::chrono::steady_clock::now();
    if (!asked_) {
      asked_ = now;
      child.forward(SIGTERM);
    } else if (now - *asked_ > kEndPatience) {
      child.forward(SIGKILL);
    }
  }

 private:
  const Switches& switches_;
  std::optional<std::chrono::steady_clock::time_point> asked_;
};

// Closing a run may wait for its energy (control/sweep.h) before the clocks are given back.
void await_driver(std::future<void>& future) {
  if (future.wait_for(2 * kRestorePatience) == std::future_status::ready) return;
  log::error(
      "the driver has not answered for {} s: the clocks may still be set; the guardian goes on "
      "trying, and 'gpoeo reset' restores them",
      (2 * kRestorePatience).count());
  ::_exit(kExitOwnFailure);  // the control thread hangs inside the driver and cannot be joined
}

// Starts the job and waits for its end; the exit code, or what kept it from starting.
Result<control::ExitStatus> run_child(const SweptJob& job, const std::string& ring_dir,
                                      Switches& switches) {
  const Injection injection = choose_injection(!job.options.no_inject, job.options.command);
  GPOEO_TRY(auto child,
            control::Child::start(job.options.command,
                                  job_environment(job.backend, ring_dir, injection), job.signals));
  if (job.guardian) job.guardian->watch_job(child.pid());
  JobEnder ender(switches);
  return wait_for_job(child, {.ending_signal = [&](int s) { switches.signal.store(s); },
                              .tick = [&](const control::Child& c) { ender(c); },
                              .tick_every = std::chrono::milliseconds(100)});
}

Life live_once(const SweptJob& job, const std::string& ring_dir) {
  std::error_code failed;
  std::filesystem::create_directory(ring_dir, failed);
  std::filesystem::permissions(ring_dir, std::filesystem::perms::owner_all, failed);
  control::RingProgress progress(ring_dir);
  if (!job.options.whole_runs) job.sweep.attach(progress);

  Clock& clock = *job.backend.clock;
  Switches switches;
  std::future<void> ready = switches.ready.get_future();
  std::future<void> finished = switches.finished.get_future();
  std::atomic<std::int64_t> began{0}, ended{0};  // of a whole run
  std::thread control([&] {
    control_sweep(job.sweep, job.options.whole_runs, clock, switches);
    if (ended.load() != 0)
      close_run(job.sweep, instant_from_ns(began), instant_from_ns(ended), clock);
    switches.finished.set_value();
  });
  await_driver(ready);
  began = to_unix_ns(clock.now());
  const auto exit = run_child(job, ring_dir, switches);
  const bool whole = job.options.whole_runs && exit && exit->code == 0;
  if (whole && switches.signal.load() == 0) ended = to_unix_ns(clock.now());
  switches.stop.request();
  await_driver(finished);
  control.join();

  const int signal = switches.signal.load();
  if (!exit) {
    job.sweep.release(exit.error().text);
    return {.swept = false, .code = fail(exit.error(), exit_code_for_start(exit.error()))};
  }
  if (signal != 0 || job.sweep.over()) return {.swept = true, .code = 0, .signal = signal};
  if (exit->code != 0) job.sweep.release(fmt::format("the job failed with {}", exit->code));
  return {.swept = false, .code = exit->code};
}

}  // namespace

int run_jobs(SweptJob job) {
  for (int life = 1;; ++life) {
    const std::size_t before = job.sweep.points().size();
    const Life lived = live_once(job, fmt::format("{}/{}", job.rings, life));
    if (lived.signal != 0) return 128 + lived.signal;
    if (lived.swept) return job.sweep.complete() ? kExitOk : kExitOwnFailure;
    if (lived.code != 0) return lived.code;
    if (job.sweep.points().size() <= before) {
      job.sweep.release(
          "the job ended before one setting was measured; give it more work, fewer seconds with "
          "--seconds-per-clock, --soak and --warm-up, or measure --whole-runs of it");
      return kExitOwnFailure;
    }
    if (!job.options.quiet && !job.options.whole_runs)
      log::info("the job ended; it is started again");
  }
}

}  // namespace gpoeo::app
