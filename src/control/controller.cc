// SPDX-License-Identifier: Apache-2.0
#include "control/controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "control/gpu_channel.h"
#include "control/problem.h"

namespace gpoeo::control {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(200);
// Warm-up is over when this many iterations in a row take about as long as as many before them;
// compilation, autotuning and cache filling come before.
constexpr std::size_t kWarmupHalf = 4;
constexpr double kWarmupTolerance = 0.1;
constexpr Duration kWarmupLongest = std::chrono::seconds(20);
// No iteration for this long, and for this many usual ones: the job is idle.
constexpr Duration kIdleAfter = std::chrono::seconds(10);
constexpr std::int64_t kIdleIterations = 8;
// A clock at which iterations change by more than this between two looks has other work to do.
constexpr double kWorkChange = 0.12;
constexpr double kWorkChangeSigmas = 8;
// So many changes of work within so long, and nothing that is measured holds long enough to be
// used.
constexpr std::size_t kUnsteadyChanges = 4;
constexpr unsigned kMostWorkChanges = 3;
constexpr Duration kUnsteadyWithin = std::chrono::minutes(10);
// How far outside of what a clock can do a window must lie to be other work.
constexpr double kImpossibleMargin = 0.05;
constexpr double kImpossibleSigmas = 4;
constexpr std::size_t kMostObservations = 400;
constexpr unsigned kMostDroppedWindows = 3;
constexpr Duration kRetryLongest = std::chrono::seconds(60);

double mean_gap_s(std::span<const Instant> ends) {
  return to_seconds(ends.back() - ends.front()).value() / static_cast<double>(ends.size() - 1);
}

}  // namespace

std::string_view to_string(State state) {
  switch (state) {
    case State::kWarmup:
      return "warmup";
    case State::kBaseline:
      return "baseline";
    case State::kSearch:
      return "search";
    case State::kHold:
      return "hold";
    case State::kDefault:
      return "default";
    case State::kIdle:
      return "idle";
    case State::kStop:
      return "stop";
  }
  return "unknown";
}

Controller::Controller(ControllerInput input)
    : clock_(*input.clock),
      progress_(*input.progress),
      policy_(*input.policy),
      measure_only_reason_(std::move(input.measure_only_reason)),
      started_(input.clock->now()),
      last_progress_(started_) {
  GPOEO_CHECK(!input.gpus.empty());
  for (GpuInput& gpu : input.gpus) {
    gpus_.push_back(std::make_unique<GpuChannel>(std::move(gpu), clock_));
  }
  problem_ = choices(gpus_);
  problem_.max_slowdown = input.max_slowdown;
  problem_.objective = input.objective;
  problem_.cost_eta = input.cost_eta;
  for (const auto& gpu : gpus_) {
    for (const auto& healed : gpu->healed_notes()) ledger_.add_note(healed);
  }
}

Controller::~Controller() = default;

Instant Controller::step() {
  const Instant now = clock_.now();
  Instant next = now + kTick;
  for (const auto& gpu : gpus_) {
    const auto polled = gpu->poll(now);
    next = std::min(next, polled.next_poll);
    add_to_books(*gpu, polled.stretch);
  }
  watch_device_events();
  if (released_) retry_restore(now);
  take_progress(now);
  if (settling_) await_settled(now);
  if (window_) await_window(now);
  return next;
}

void Controller::add_to_books(const GpuChannel& gpu,
                              const std::optional<GpuChannel::Stretch>& stretch) {
  if (!stretch) return;
  ledger_.add_energy(gpu.device().identity().index, stretch->from, stretch->to, stretch->energy,
                     stretch->error);
}

void Controller::watch_device_events() {
  for (const auto& gpu : gpus_) {
    for (std::string& note : gpu->take_notes()) {
      listener_(note);
      ledger_.add_note(std::move(note));
    }
    if (gpu->lost() && !released_) release("a GPU was lost");
  }
}

void Controller::take_progress(Instant now) {
  progress_.poll(now);
  for (std::string& note : progress_.take_notes()) ledger_.add_note(std::move(note));
  if (progress_.generation() != generation_) {
    generation_ = progress_.generation();
    restart("iterations are counted anew");
  }
  if (progress_.several_jobs() && !released_) {
    release("several processes launch work of their own, and only one could be followed");
    several_jobs_ = true;
  }
  const std::vector<Instant> ends = progress_.take_ends();
  if (ends.empty()) {
    if (state_ != State::kIdle && state_ != State::kWarmup && state_ != State::kStop &&
        now - last_progress_ > std::max(kIdleAfter, kIdleIterations * last_gap_)) {
      before_idle_ = state_;
      window_.reset();
      settling_ = false;
      enter(State::kIdle, "no iteration ends");
    }
    return;
  }
  last_progress_ = now;
  if (last_end_) last_gap_ = (ends.back() - *last_end_) / static_cast<std::int64_t>(ends.size());
  last_end_ = ends.back();
  ledger_.add_iteration_ends(ends);
  if (state_ == State::kIdle) {
    enter(before_idle_, "iterations go on");
    if (decision_) apply(*decision_);
  }
  if (state_ == State::kWarmup) {
    warmup_ends_.insert(warmup_ends_.end(), ends.begin(), ends.end());
    const std::span<const Instant> all = warmup_ends_;
    if (all.size() < 2 * kWarmupHalf + 1) return;
    const double before = mean_gap_s(all.last(2 * kWarmupHalf + 1).first(kWarmupHalf + 1));
    const double after = mean_gap_s(all.last(kWarmupHalf + 1));
    const bool steady = std::abs(after / before - 1) <= kWarmupTolerance;
    if (steady || all.back() - all.front() >= kWarmupLongest) decide();
    return;
  }
  if (window_) window_->add(ends);
}

// The last ends. What only now turns out to be the unit has nothing to be compared with any more.
void Controller::finish_progress(Instant now) {
  progress_.finish(now);
  for (std::string& note : progress_.take_notes()) ledger_.add_note(std::move(note));
  if (progress_.generation() != generation_) return;
  ledger_.add_iteration_ends(progress_.take_ends());
}

// Forgets what was measured: it was other work.
void Controller::restart(const std::string& why, std::optional<Instant> began) {
  ledger_.new_phase(began);
  observations_.clear();
  warmup_ends_.clear();
  window_.reset();
  settling_ = false;
  if (state_ == State::kStop || state_ == State::kWarmup) return;
  restore_all();
  enter(State::kWarmup, why);
}

void Controller::decide() {
  policy::Decision decision = policy_.decide(problem_, observations_);
  const bool may_set = !released_ && measure_only_reason_.empty();
  if (!may_set && !decision.setting.is_default()) {
    recommend(decision);
    decision = {.purpose = policy::Purpose::kBaseline,
                .setting = {},
                .goal = decision.goal,
                .why = "measuring only"};
  }
  apply(decision);
}

// What would be done if clocks could be set; told once for each clock.
void Controller::recommend(const policy::Decision& decision) {
  if (released_ || recommended_ == decision.setting) return;
  recommended_ = decision.setting;
  std::string text =
      fmt::format("would set {} ({})", policy::to_string(decision.setting), decision.why);
  listener_(text);
  ledger_.add_note(std::move(text));
}

void Controller::apply(const policy::Decision& decision) {
  const bool same = decision_ && decision_->setting == decision.setting &&
                    decision_->purpose == decision.purpose && state_ != State::kWarmup;
  const bool clocks_stand =
      decision_ && decision_->setting == decision.setting && !observations_.empty();
  decision_ = decision;
  window_.reset();
  settling_ = false;
  if (!clocks_stand) {
    // Before it goes into the books: what could not be set was not held.
    if (Status written = write_clocks(decision.setting); !written) {
      ledger_.add_note(written.error().text);
      give_up_setting(written.error());
      return;
    }
  }
  if (!same) {
    static constexpr State kStates[] = {State::kBaseline, State::kSearch, State::kHold,
                                        State::kDefault};
    ledger_.add_decision(decision, elapsed_s(clock_.now()));
    enter(kStates[static_cast<int>(decision.purpose)],
          fmt::format("{}: {}", policy::to_string(decision.setting), decision.why));
  }
  if (clocks_stand) {
    window_.emplace(decision.goal, clock_.now());
  } else {
    settling_ = true;
  }
}

Status Controller::write_clocks(const policy::ClockSetting& setting) {
  for (const auto& gpu : gpus_) GPOEO_TRY_STATUS(gpu->set_clocks(setting));
  return {};
}

void Controller::restore_all() {
  // What fails is in the channel's notes and in the report, and is tried again at the end.
  for (const auto& gpu : gpus_) static_cast<void>(gpu->restore());
  decision_.reset();
}

// Without the right to set clocks the run goes on and recommends; any other failure ends at default
// clocks.
void Controller::give_up_setting(const Error& error) {
  const bool refused =
      error.kind == ErrorKind::kNoPermission || error.kind == ErrorKind::kNotSupported;
  const bool untouched =
      std::ranges::none_of(gpus_, [](const auto& gpu) { return gpu->touched(); });
  if (!refused || !untouched || !measure_only_reason_.empty()) {
    release("clocks cannot be set: " + error.text);
    return;
  }
  measure_only_reason_ = error.text;
  listener_("measuring only: " + error.text);
  decision_.reset();
  decide();
}

// A restore that failed is tried again for as long as the job runs: a GPU may come back.
void Controller::retry_restore(Instant now) {
  const bool failed = std::ranges::any_of(gpus_, [](const auto& gpu) { return gpu->touched(); });
  if (!failed || now < retry_at_) return;
  retry_wait_ = std::min<Duration>(2 * retry_wait_, kRetryLongest);
  retry_at_ = now + retry_wait_;
  restore_all();
  if (std::ranges::none_of(gpus_, [](const auto& gpu) { return gpu->touched(); })) {
    listener_("clocks are restored after all");
    ledger_.add_note("a restore that had failed worked when it was tried again");
  }
}

void Controller::release(std::string why) {
  if (released_) return;
  released_ = true;
  restore_all();
  window_.reset();
  settling_ = false;
  enter(State::kStop, "default clocks from here on: " + why);
}

void Controller::await_settled(Instant now) {
  Instant settled_at{};
  for (const auto& gpu : gpus_) {
    const auto at = gpu->settled(now);
    if (!at) return;
    settled_at = std::max(settled_at, *at);
  }
  settling_ = false;
  window_.emplace(decision_->goal, settled_at);
}

void Controller::await_window(Instant now) {
  if (!window_->ready()) return;
  auto observation = observe();
  if (!observation) {
    // The readings that close the window are on their way; give up on it when they do not come.
    if (now - window_->ends().back() < std::chrono::seconds(5)) return;
    ledger_.add_note("a window was dropped because its energy could not be read");
    // Nothing can be learned without energy, and an unmeasured clock must not stay.
    if (++dropped_windows_ >= kMostDroppedWindows) {
      dropped_windows_ = 0;
      restart("energy cannot be read");
    } else {
      window_.emplace(decision_->goal, now);
    }
    return;
  }
  dropped_windows_ = 0;
  if (work_changed(*observation)) {
    const Instant began = window_->ends().front();
    std::erase_if(changes_, [&](Instant t) { return now - t > kUnsteadyWithin; });
    changes_.push_back(now);
    ++work_changes_;
    if (changes_.size() >= kUnsteadyChanges) {
      release("unsteady: the work changes too often for anything measured to be trusted");
    } else {
      restart("the work changed", began);
    }
    return;
  }
  ledger_.add_observation(*observation);
  observations_.push_back(*observation);
  if (observations_.size() > kMostObservations) {
    // The oldest look at the clock held now is the one that will be missed least.
    const auto oldest = std::ranges::find_if(
        observations_, [&](const auto& o) { return o.setting == decision_->setting; });
    observations_.erase(oldest);
  }
  decide();
}

std::optional<policy::Observation> Controller::observe() {
  policy::Observation o;
  double energy_variance = 0;
  for (const auto& gpu : gpus_) {
    const auto measured = gpu->iteration_energy(window_->ends());
    if (!measured) return std::nullopt;
    o.iterations = measured->iterations;
    o.time = measured->time;
    o.time_error =
        measured->time_error.value_or(measured->time * window_->relative_error().value_or(0.05));
    o.energy += measured->energy;
    const Joules error = measured->energy_error.value_or(measured->energy * 0.05);
    energy_variance += error.value() * error.value();
    o.held = o.held && gpu->held();
  }
  o.energy_error = Joules(std::sqrt(energy_variance));
  o.setting = decision_->setting;
  const auto ends = window_->ends();
  o.at = Seconds((elapsed_s(ends.front()) + elapsed_s(ends.back())) / 2);
  return o;
}

// No work gets faster by a lower clock, nor slower by more than the clock was lowered: such a
// window and the baseline that it would be compared with hold different work.
bool Controller::impossible_response(const policy::Observation& now) const {
  if (!now.setting.sm || problem_.sm_clocks.empty()) return false;
  const auto baseline =
      std::ranges::find_if(observations_.rbegin(), observations_.rend(),
                           [](const policy::Observation& o) { return o.setting.is_default(); });
  if (baseline == observations_.rend()) return false;
  const double ratio = now.time / baseline->time;
  const double error =
      ratio * std::hypot(now.time_error / now.time, baseline->time_error / baseline->time);
  const double margin = kImpossibleMargin + kImpossibleSigmas * error;
  if (ratio < 1 - margin) return true;
  // How much slower a slow memory clock or a power limit may make it is not known.
  if (now.setting.memory || now.setting.power_limit) return false;
  return ratio > problem_.sm_clocks.back() / *now.setting.sm + margin;
}

bool Controller::work_changed(const policy::Observation& now) const {
  if (impossible_response(now)) return true;
  for (const auto& before : observations_) {
    if (before.setting != now.setting) continue;
    const auto differs = [](double a, double b, double error) {
      return std::abs(a / b - 1) > std::max(kWorkChange, kWorkChangeSigmas * error / b);
    };
    const double time_error = std::hypot(now.time_error.value(), before.time_error.value());
    const double energy_error = std::hypot(now.energy_error.value(), before.energy_error.value());
    return differs(now.time.value(), before.time.value(), time_error) ||
           differs(now.energy.value(), before.energy.value(), energy_error);
  }
  return false;
}

void Controller::enter(State state, const std::string& why) {
  state_ = state;
  listener_(fmt::format("{}: {}", to_string(state), why));
}

LiveStatus Controller::live_status() const {
  const Instant now = clock_.now();
  LiveStatus s{.state = state_,
               .elapsed_s = elapsed_s(now),
               .iterations = progress_.iterations().value_or(ledger_.iterations())};
  s.iterations_per_s = ledger_.rate(now);
  for (const auto& gpu : gpus_) {
    if (const auto power = gpu->newest_power()) s.power_w = s.power_w.value_or(0) + power->value();
  }
  if (const auto sm = gpus_.front()->newest_sm_clock()) s.sm_mhz = to_mhz(*sm);
  s.setting = policy::to_string(decision_ ? decision_->setting : policy::ClockSetting{});
  return s;
}

// Figures that cannot be what they say are not shown.
std::string Controller::why_nothing_is_claimed(const report::Session& session) const {
  if (!measure_only_reason_.empty()) return "no clock was set";
  if (several_jobs_) return "several processes launch work of their own; run each by itself";
  if (work_changes_ >= kMostWorkChanges) {
    return fmt::format("the work changed {} times: its iterations do not compare", work_changes_);
  }
  if (session.saving) {
    const auto& slowdown = session.saving->net_slowdown;
    if (slowdown.value < -kImpossibleMargin - kImpossibleSigmas * slowdown.error) {
      return "iterations became shorter than at default clocks: the baseline was of other work";
    }
  }
  return "";
}

report::Session Controller::finish() {
  released_ = true;  // whatever the last readings bring, no clock is set any more
  restore_all();
  const Instant now = clock_.now();
  report::Session session;
  session.policy = std::string(policy_.name());
  session.max_slowdown = problem_.max_slowdown;
  session.measure_only_reason = measure_only_reason_;
  session.duration_s = elapsed_s(now);
  for (const auto& gpu : gpus_) {
    add_to_books(*gpu, gpu->close(now));
    session.clock_writes += gpu->clock_writes();
    session.gpus.push_back(gpu->section());
    session.simulated = session.simulated || gpu->device().identity().simulated;
  }
  watch_device_events();
  finish_progress(now);
  ledger_.close(session);
  session.iterations = progress_.iterations().value_or(session.iterations);
  session.progress_source = std::string(to_string(progress_.source()));
  session.launch_log = progress_.launch_log();
  if (const std::string reason = why_nothing_is_claimed(session); !reason.empty()) {
    session.saving.reset();
    session.no_saving_reason = reason;
  }
  return session;
}

}  // namespace gpoeo::control
