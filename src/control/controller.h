// SPDX-License-Identifier: Apache-2.0
// The loop of one job: measure whole iterations at a clock, ask the policy, set the next clock, and
// keep the books for the report. Stepwise and without a thread: `run` drives it on the wall clock,
// the tests on virtual time.
//
// States: warmup -> baseline -> search -> hold (-> baseline when the work changes), idle while the
// job launches nothing, stop from anywhere. A failed write, a lost GPU or a release ends at default
// clocks; measuring goes on.
//
// Thread rule: one thread, the one that owns the devices.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "control/gpu_channel.h"
#include "control/iteration_window.h"
#include "control/ledger.h"
#include "control/progress.h"
#include "policy/policy.h"
#include "report/session.h"

namespace gpoeo::control {

enum class State { kWarmup, kBaseline, kSearch, kHold, kDefault, kIdle, kStop };
std::string_view to_string(State state);

struct ControllerInput {
  Clock* clock = nullptr;
  std::vector<GpuInput> gpus;  // at least one
  ProgressReader* progress = nullptr;
  const policy::Policy* policy = nullptr;
  double max_slowdown = 0.05;
  policy::Objective objective = policy::Objective::kEnergy;
  double cost_eta = 0.5;            // kCost only
  std::string measure_only_reason;  // set when the guards are null
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
  void add_to_books(const GpuChannel& gpu, const std::optional<GpuChannel::Stretch>& stretch);
  void watch_device_events();
  void take_progress(Instant now);
  void finish_progress(Instant now);
  // `began`: when the other work began, if that was noticed only now.
  void restart(const std::string& why, std::optional<Instant> began = std::nullopt);
  void decide();
  void recommend(const policy::Decision& decision);
  void apply(const policy::Decision& decision);
  Status write_clocks(const policy::ClockSetting& setting);
  void restore_all();
  void give_up_setting(const Error& error);
  void retry_restore(Instant now);
  void await_settled(Instant now);
  void await_window(Instant now);
  std::optional<policy::Observation> observe();
  bool impossible_response(const policy::Observation& now) const;
  bool work_changed(const policy::Observation& now) const;
  std::string why_nothing_is_claimed(const report::Session& session) const;
  void enter(State state, const std::string& why);
  double elapsed_s(Instant t) const { return to_seconds(t - started_).value(); }

  Clock& clock_;
  ProgressReader& progress_;
  const policy::Policy& policy_;
  policy::Problem problem_;
  std::string measure_only_reason_;
  std::vector<std::unique_ptr<GpuChannel>> gpus_;
  Ledger ledger_;
  std::function<void(const std::string&)> listener_ = [](const std::string&) {};

  Instant started_;
  State state_ = State::kWarmup;
  State before_idle_ = State::kWarmup;
  bool released_ = false;
  bool several_jobs_ = false;
  unsigned work_changes_ = 0;
  std::vector<Instant> changes_;  // of work, lately
  std::vector<Instant> warmup_ends_;
  std::vector<policy::Observation> observations_;  // since the work last changed
  std::optional<policy::Decision> decision_;
  policy::ClockSetting recommended_;  // last told, when clocks may not be set
  bool settling_ = false;
  std::optional<IterationWindow> window_;
  unsigned generation_ = 0;
  Instant last_progress_;
  std::optional<Instant> last_end_;
  Duration last_gap_{};  // mean distance of the newest ends
  unsigned dropped_windows_ = 0;
  Instant retry_at_{};
  Duration retry_wait_ = std::chrono::milliseconds(500);
};

}  // namespace gpoeo::control
