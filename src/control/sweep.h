// SPDX-License-Identifier: Apache-2.0
// Measures a job that is iterating at one setting after another: default clocks first, last and in
// between, the others in a random order. Whole iterations only. Stepwise and without a thread, like
// Controller: `measure` drives it on the wall clock, the tests on virtual time.
//
// The job may end and be started again in the middle (attach()): the window under way is lost, and
// default clocks are looked at before it goes on. When what is counted as an iteration turns out to
// be another thing, everything measured is dropped and the sweep starts over.
//
// A failed write, a lost GPU, a job that shows no iterations or release() ends it; what was
// measured is kept. Clocks are given back in release() and finish(), and by the guards at the
// latest.
//
// Thread rule: one thread, the one that owns the devices.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "control/gpu_channel.h"
#include "control/iteration_window.h"
#include "control/progress.h"
#include "policy/policy.h"

namespace gpoeo::control {

// Each setting `repeats` times, each time in another order, with default clocks at both ends and
// after each `default_every` of them.
std::vector<policy::ClockSetting> sweep_order(const std::vector<policy::ClockSetting>& settings,
                                              int repeats, int default_every, std::uint64_t seed);

struct SweepPoint {
  policy::Observation observation;
  std::optional<gpu::Counters> counters;  // of the first GPU over the window; absent: it has none
};

struct SweepInput {
  Clock* clock = nullptr;
  std::vector<GpuInput> gpus;  // at least one, each with a guard
  // At each setting, from when the card has settled.
  policy::MeasureGoal goal{.least = Seconds(8), .longest = Seconds(60), .precision = 0};
  // Whole runs of the job, between begin_run() and end_run(), instead of iterations: no progress is
  // needed, and start-up counts.
  bool whole_runs = false;
  // At each setting, between settling and the window: a card that was hotter or colder a moment ago
  // leaks more or less than it will (on an A100 of 15 s and 0.3 W/K, 3 % of the power after a step
  // from 330 to 120 W).
  Seconds soak{10};
  Seconds warm_up{15};  // at default clocks, before the first window: a cold card draws less
  Seconds silence{90};  // without the end of an iteration, then it is given up
};

class Sweep {
 public:
  explicit Sweep(SweepInput input);
  ~Sweep();

  // What may be swept, as the GPUs allow it.
  policy::Problem choices() const;
  // What is to be measured (sweep_order). Call once, before attach().
  void plan(std::vector<policy::ClockSetting> order) { order_ = std::move(order); }
  // The job's iterations from now on; `progress` must live until the next attach() or the end.
  void attach(ProgressReader& progress);
  // Whole runs only. Sets the clocks of the next run; call before the job starts, and step() while
  // it runs.
  void begin_run();
  // It ran from `from` to `to`. False while the readings that close it have not come: step(), and
  // call again.
  bool end_run(Instant from, Instant to);
  // Does what is due and says when to be called again.
  Instant step();
  // Clocks back to what was found, at once, and no more measuring.
  void release(const std::string& why);
  // Restores; true when every control is as it was found. Call last.
  bool finish();

  bool over() const { return complete() || !stopped_.empty(); }
  bool complete() const { return next_ >= order_.size(); }
  const std::string& why_stopped() const { return stopped_; }  // empty: not before its end
  std::size_t windows_done() const { return next_; }
  std::size_t windows() const { return order_.size(); }
  const std::vector<SweepPoint>& points() const { return points_; }
  ProgressSource progress_source() const { return source_; }
  const GpuChannel& gpu(std::size_t i) const { return *gpus_[i]; }
  std::size_t gpus() const { return gpus_.size(); }

  // One line for the log; and after each window, when points() has changed.
  void on_event(std::function<void(const std::string&)> listener) { event_ = std::move(listener); }
  void on_points(std::function<void()> listener) { changed_ = std::move(listener); }

 private:
  enum class State { kWarmup, kSettling, kMeasuring };

  void take_progress(Instant now);
  void restart(Instant now, const std::string& why);
  policy::ClockSetting wanted() const;
  void set_clocks();
  void open_window(Instant from);
  void await_window(Instant now);
  void keep(policy::Observation observation);
  bool another_unit(const policy::Observation& now) const;
  void restore_all();
  std::optional<policy::Observation> observe_run(Instant from, Instant to);

  Clock& clock_;
  std::vector<std::unique_ptr<GpuChannel>> gpus_;
  std::vector<policy::ClockSetting> order_;
  policy::MeasureGoal goal_;
  bool whole_runs_;
  std::vector<EnergyStretch> stretches_;  // of all GPUs since begin_run()
  Seconds soak_, warm_up_, silence_;
  std::function<void(const std::string&)> event_ = [](const std::string&) {};
  std::function<void()> changed_ = [] {};

  Instant started_;
  ProgressReader* progress_ = nullptr;
  ProgressSource source_ = ProgressSource::kNone;
  unsigned generation_ = 0;
  Instant last_end_{};  // or when the job began
  State state_ = State::kWarmup;
  Instant warm_from_{};
  std::size_t warm_ends_ = 0;
  // A look at default clocks that is not in the order: after a start of the job.
  bool extra_default_ = false;
  std::optional<IterationWindow> window_;
  std::size_t next_ = 0;
  unsigned dropped_ = 0;  // windows in a row without an energy
  unsigned started_over_ = 0;
  std::vector<SweepPoint> points_;
  std::string stopped_;
};

}  // namespace gpoeo::control
