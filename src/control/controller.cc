// SPDX-License-Identifier: Apache-2.0
#include "control/controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "control/counter_choice.h"
#include "control/gpu_channel.h"
#include "control/observe.h"
#include "control/problem.h"

namespace gpoeo::control {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(200);
constexpr unsigned kMostDroppedWindows = 3;
// So many traces in a row about which nothing can be said.
constexpr unsigned kMostUnknowable = 3;
constexpr Duration kRetryLongest = std::chrono::seconds(60);

std::vector<std::unique_ptr<GpuChannel>> channels(std::vector<GpuInput> inputs,
                                                  const Clock& clock) {
  GPOEO_CHECK(!inputs.empty());
  std::vector<std::unique_ptr<GpuChannel>> gpus;
  for (GpuInput& gpu : inputs) gpus.push_back(std::make_unique<GpuChannel>(std::move(gpu), clock));
  return gpus;
}

}  // namespace

Controller::Controller(ControllerInput input)
    : clock_(*input.clock),
      progress_(*input.progress),
      policy_(*input.policy),
      measure_only_reason_(std::move(input.measure_only_reason)),
      gpus_(channels(std::move(input.gpus), clock_)),
      problem_(choices(gpus_)),
      work_(problem_.sm_clocks),
      started_(input.clock->now()),
      last_progress_(started_) {
  profile_ =
      std::make_unique<ProfileStage>(gpus_, std::move(input.counters), std::move(input.predict));
  traces_ = std::make_unique<TraceMeter>(gpus_, input.traces_after, started_);
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
    if (polled.stretch) add_to_books(*gpu, *polled.stretch);
  }
  watch_device_events();
  if (released_) retry_restore(now);
  take_progress(now);
  if (settling_) await_settled(now);
  profile_->poll(now);
  if (window_) await_window(now);
  if (traces_->measuring()) await_trace(now);
  return next;
}

// Forgets what was measured: it was other work.
void Controller::restart(const std::string& why, std::optional<Instant> began) {
  // Counted iterations are booked as they come; without them time itself is.
  if (!began && traces_->active()) began = clock_.now();
  cut_books(ledger_.new_phase(began));
  work_.begin(ledger_.phase());
  warm_up_.restart();
  drop_window();
  profile_->new_work();
  traces_->new_work(clock_.now());
  if (state_ == State::kStop || state_ == State::kWarmup) return;
  restore_all();
  enter(State::kWarmup, why);
}

// What the cost objective weighs time with (policy/policy.h).
void Controller::set_power_ratio() {
  const auto baseline = std::ranges::find_if(
      work_.observations(), [](const policy::Observation& o) { return o.setting.is_default(); });
  if (baseline == work_.observations().end() || !problem_.power) return;
  const Watts mean = baseline->energy / baseline->time;
  const Watts most = problem_.power->highest * static_cast<double>(gpus_.size());
  if (mean.value() > 0) problem_.most_power_over_default = most / mean;
}

void Controller::decide() {
  set_power_ratio();
  problem_.prior = work_.prior();
  policy::Decision decision = policy_.decide(problem_, work_.observations());
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
      decision_ && decision_->setting == decision.setting && !work_.observations().empty();
  decision_ = decision;
  drop_window();
  if (!clocks_stand) {
    // Before it goes into the books: what could not be set was not held.
    if (Status written = set_clocks(gpus_, decision.setting); !written) {
      ledger_.add_note(written.error().text);
      give_up_setting(written.error());
      return;
    }
    book_setting(decision.setting);
  }
  if (!same) {
    static constexpr State kStates[] = {State::kBaseline, State::kSearch, State::kHold,
                                        State::kDefault};
    ledger_.add_decision(decision, elapsed_s(clock_.now()));
    enter(kStates[static_cast<int>(decision.purpose)],
          fmt::format("{}: {}", policy::to_string(decision.setting), decision.why));
  }
  if (clocks_stand) {
    open_window(clock_.now());
  } else {
    settling_ = true;
  }
}

void Controller::restore_all() {
  restore(gpus_);  // what fails is tried again at the end
  if (!any_touched(gpus_)) book_setting({});
  decision_.reset();
}

// Without the right to set clocks the run goes on and recommends; any other failure ends at default
// clocks.
void Controller::give_up_setting(const Error& error) {
  const bool refused =
      error.kind == ErrorKind::kNoPermission || error.kind == ErrorKind::kNotSupported;
  if (!refused || any_touched(gpus_) || !measure_only_reason_.empty()) {
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
  if (!any_touched(gpus_) || now < retry_at_) return;
  retry_wait_ = std::min<Duration>(2 * retry_wait_, kRetryLongest);
  retry_at_ = now + retry_wait_;
  restore_all();
  if (!any_touched(gpus_)) {
    listener_("clocks are restored after all");
    ledger_.add_note("a restore that had failed worked when it was tried again");
  }
}

void Controller::release(std::string why) {
  if (released_) return;
  released_ = true;
  restore_all();
  drop_window();
  enter(State::kStop, "default clocks from here on: " + why);
}

void Controller::await_settled(Instant now) {
  const auto settled_at = settled(gpus_, now);
  if (!settled_at) return;
  settling_ = false;
  open_window(*settled_at);
}

void Controller::open_window(Instant from) {
  work_.window_opens();
  if (traces_->active()) {
    traces_->open(decision_->goal, from);
    return;
  }
  window_.emplace(decision_->goal, from);
  if (at_baseline()) profile_->baseline_begins(from, to_seconds(last_gap_));
}

// What was being measured is of no use.
void Controller::drop_window() {
  window_.reset();
  traces_->drop();
  settling_ = false;
  profile_->cancel();
}

// Counters are read at default clocks only, where the work is known to be one.
bool Controller::at_baseline() const {
  return decision_ && decision_->purpose == policy::Purpose::kBaseline &&
         decision_->setting.is_default();
}

// Whether the work has its profile, or needs none now.
bool Controller::profiled(const policy::Observation& baseline, Span span, Instant now) {
  if (!at_baseline()) return true;
  const auto counters =
      traces_->active() ? ProfileStage::Counters::kLeave : ProfileStage::Counters::kRead;
  const bool complete = profile_->complete(baseline, now, span.from, span.to, counters);
  for (const std::string& line : profile_->take_events()) listener_(line);
  if (complete) {
    // Work that came back has brought what was expected of it.
    if (work_.prior().empty()) work_.expect(profile_->predictions());
  } else if (state_ != State::kProfile) {
    enter(State::kProfile, "reading counters at default clocks");
  }
  return complete;
}

void Controller::await_window(Instant now) {
  if (!window_->ready()) {
    look_early(now);
    return;
  }
  const std::span<const Instant> ends = window_->ends();
  auto observation = observe(ends);
  if (!observation) {
    // The readings that close the window are on their way; give up on it when they do not come.
    if (now - ends.back() < std::chrono::seconds(5)) return;
    ledger_.add_note("a window was dropped because its energy could not be read");
    // Nothing can be learned without energy, and an unmeasured clock must not stay.
    if (++dropped_windows_ >= kMostDroppedWindows) {
      dropped_windows_ = 0;
      restart("energy cannot be read");
    } else {
      open_window(now);
    }
    return;
  }
  dropped_windows_ = 0;
  use_observation(*observation, {ends.front(), ends.back()}, now);
}

void Controller::await_trace(Instant now) {
  auto measured = traces_->poll(now);
  if (!measured) return;
  if (!*measured) {
    const std::string& why = measured->error().text;
    if (++unknowable_ >= kMostUnknowable) {
      unknowable_why_ =
          "no launch was seen, and nothing in the power trace can be compared: " + why;
      release(unknowable_why_);
    } else {
      restart("its rhythm was lost: " + why);
    }
    return;
  }
  unknowable_ = 0;
  policy::Observation& o = (*measured)->observation;
  o.setting = decision_->setting;
  const Span span{(*measured)->from, (*measured)->to};
  o.at = Seconds((elapsed_s(span.from) + elapsed_s(span.to)) / 2);
  use_observation(o, span, now);
}

// A long window is not waited for when its newest iterations are other work.
void Controller::look_early(Instant now) {
  const auto newest = work_.look_due(window_->ends(), now);
  if (newest.empty()) return;
  const auto look = observe(newest);
  if (!look) return;
  const auto [seen, began] = work_.judge_look(*look, newest.front(), now);
  if (seen != WorkWatch::Seen::kPresent) other_work(seen, began, now);
}

void Controller::use_observation(const policy::Observation& observation, Span span, Instant now) {
  const auto seen = work_.judge(observation, now);
  if (seen != WorkWatch::Seen::kPresent) {
    other_work(seen, span.from, now);
    return;
  }
  if (!profiled(observation, span, now)) return;
  ledger_.add_observation(observation);
  work_.add(observation);
  decide();
}

void Controller::other_work(WorkWatch::Seen seen, Instant began, Instant now) {
  if (seen == WorkWatch::Seen::kReturned) {
    resume(began);
  } else if (work_.unsteady(now)) {
    release("unsteady: the work changes too often for anything measured to be trusted");
  } else {
    restart("the work changed", began);
  }
}

// Work that is known needs no warm-up: a few iterations at default clocks tell.
bool Controller::came_back() {
  if (released_) return false;
  const auto newest = work_.enough_to_recognise(warm_up_.ends());
  if (newest.empty()) return false;
  const auto look = observe_window(gpus_, newest, std::nullopt, started_);
  if (!look || !work_.recall(*look)) return false;
  resume(newest.front());
  return true;
}

// Work that is known goes on where it was left.
void Controller::resume(Instant began) {
  cut_books(ledger_.resume_phase(work_.ledger_phase(), began));
  listener_("this work is known");
  decide();
}

std::optional<policy::Observation> Controller::observe(std::span<const Instant> ends) {
  auto o = observe_window(gpus_, ends, window_->relative_error(), started_);
  if (o) o->setting = decision_->setting;
  return o;
}

void Controller::enter(State state, const std::string& why) {
  state_ = state;
  listener_(fmt::format("{}: {}", to_string(state), why));
}

}  // namespace gpoeo::control
