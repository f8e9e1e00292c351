// SPDX-License-Identifier: Apache-2.0
// The loop of one job: measure whole iterations at a clock, ask the policy, set the next clock, and
// keep the books for the report. Stepwise and without a thread: `run` drives it on the wall clock,
// the tests on virtual time.
//
// States: warmup -> baseline -> profile -> search -> hold (-> baseline when the work changes), idle
// while the job launches nothing, stop from anywhere. Counters are read once for each kind of work:
// beside its first baseline where that disturbs nothing (GPM), else in `profile` behind it. A
// failed write, a lost GPU or a release ends at default clocks; measuring goes on.
//
// Thread rule: one thread, the one that owns the devices.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "control/counter_choice.h"
#include "control/gpu_channel.h"
#include "control/iteration_window.h"
#include "control/ledger.h"
#include "control/profile_stage.h"
#include "control/progress.h"
#include "control/state.h"
#include "control/trace_meter.h"
#include "control/warm_up.h"
#include "control/work_watch.h"
#include "policy/policy.h"
#include "report/session.h"

namespace gpoeo::control {

struct ControllerInput {
  Clock* clock = nullptr;
  std::vector<GpuInput> gpus;  // at least one
  ProgressReader* progress = nullptr;
  const policy::Policy* policy = nullptr;
  double max_slowdown = 0.05;
  policy::Objective objective = policy::Objective::kEnergy;
  double cost_eta = 0.5;            // kCost only
  std::string measure_only_reason;  // set when the guards are null
  CounterOptions counters{};
  Predict predict{};  // the model, asked once for each kind of work
  // Without an iteration for so long on a busy GPU, power traces are compared instead of counting
  // iterations; nullopt: never.
  std::optional<Duration> traces_after{};
};

// What a progress display shows.
struct LiveStatus {
  State state = State::kWarmup;
  double elapsed_s = 0;
  std::uint64_t iterations = 0;
  std::optional<double> iterations_per_s{};  // over the last ten seconds
  std::optional<double> power_w{};           // all GPUs, newest samples
  std::optional<double> sm_mhz{};            // first GPU
  std::string setting{};                     // what is asked for
};

class Controller {
 public:
  explicit Controller(ControllerInput input);
  ~Controller();

  // Does what is due and says when to be called again.
  Instant step();
  // Clocks back to what was found, at once; no clock is set after it. Measuring goes on.
  void release(std::string why);
  // Restores, takes the last readings and closes the books. The outcome of every restore is in the
  // session. Call once, last.
  report::Session finish();

  LiveStatus live_status() const;
  State state() const { return state_; }
  // Called at each change of state with one line for the log.
  void on_event(std::function<void(const std::string&)> listener) {
    listener_ = std::move(listener);
  }

 private:
  struct Span {
    Instant from, to;
  };
  void add_to_books(const GpuChannel& gpu, const EnergyStretch& stretch);
  std::vector<RunBreak> add_to_books(std::span<const Instant> ends);
  void cut_books(std::span<const RunBreak> breaks);
  void watch_device_events();
  void take_progress(Instant now);
  void follow_traces(Instant now);
  void finish_progress(Instant now);
  // `began`: when the other work began, if that was noticed only now.
  void restart(const std::string& why, std::optional<Instant> began = std::nullopt);
  void set_power_ratio();
  void decide();
  void recommend(const policy::Decision& decision);
  void apply(const policy::Decision& decision);
  void restore_all();
  void book_setting(const policy::ClockSetting& setting);
  void give_up_setting(const Error& error);
  void retry_restore(Instant now);
  void await_settled(Instant now);
  void open_window(Instant from);
  void drop_window();
  void await_window(Instant now);
  bool at_baseline() const;
  bool profiled(const policy::Observation& baseline, Span span, Instant now);
  void await_trace(Instant now);
  void look_early(Instant now);
  void use_observation(const policy::Observation& observation, Span span, Instant now);
  void other_work(WorkWatch::Seen seen, Instant began, Instant now);
  bool came_back();
  void resume(Instant began);
  std::optional<policy::Observation> observe(std::span<const Instant> ends);
  void enter(State state, const std::string& why);
  double elapsed_s(Instant t) const { return to_seconds(t - started_).value(); }

  Clock& clock_;
  ProgressReader& progress_;
  const policy::Policy& policy_;
  std::string measure_only_reason_;
  std::vector<std::unique_ptr<GpuChannel>> gpus_;
  policy::Problem problem_;  // its prior is the present work's
  WorkWatch work_;
  std::unique_ptr<ProfileStage> profile_;
  std::unique_ptr<TraceMeter> traces_;
  Ledger ledger_;
  std::function<void(const std::string&)> listener_ = [](const std::string&) {};

  Instant started_;
  State state_ = State::kWarmup;
  State before_idle_ = State::kWarmup;
  bool released_ = false;
  bool several_jobs_ = false;
  WarmUp warm_up_;
  std::optional<policy::Decision> decision_;
  policy::ClockSetting recommended_;  // last told, when clocks may not be set
  bool settling_ = false;
  std::optional<IterationWindow> window_;
  unsigned generation_ = 0;
  Instant last_progress_;
  std::optional<Instant> last_end_;
  Duration last_gap_{};  // mean distance of the newest ends
  unsigned dropped_windows_ = 0;
  unsigned unknowable_ = 0;  // traces in a row
  std::string unknowable_why_{};
  Instant retry_at_{};
  Duration retry_wait_ = std::chrono::milliseconds(500);
};

}  // namespace gpoeo::control
