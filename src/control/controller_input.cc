// SPDX-License-Identifier: Apache-2.0
// The controller's outer side: what comes in from the job and the GPUs, what goes into the books,
// and what is told at the end. What is made of it, state by state, is in controller.cc.
#include <fmt/format.h>

#include <algorithm>

#include "control/controller.h"

namespace gpoeo::control {
namespace {

// No iteration for this long, and for this many usual ones: the job is idle.
constexpr Duration kIdleAfter = std::chrono::seconds(10);
constexpr std::int64_t kIdleIterations = 8;

}  // namespace

void Controller::add_to_books(const GpuChannel& gpu, const EnergyStretch& stretch) {
  ledger_.add_energy(gpu.device().identity().index, stretch.from, stretch.to, stretch.energy,
                     stretch.error);
}

// Energy is booked as iterations end, and cut where pauses begin and end.
std::vector<RunBreak> Controller::add_to_books(std::span<const Instant> ends) {
  if (ends.empty()) return {};
  auto breaks = ledger_.add_iteration_ends(ends);
  for (const auto& gpu : gpus_) {
    gpu->book().iteration_ended(ends.back());
  }
  cut_books(breaks);
  return breaks;
}

void Controller::cut_books(std::span<const RunBreak> breaks) {
  for (const auto& gpu : gpus_) {
    for (const RunBreak& b : breaks) {
      if (b.last_end) gpu->book().cut_at(*b.last_end);
      gpu->book().cut_at(b.first_end);
    }
  }
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
    if (!last_end_) follow_traces(now);
    if (!traces_->active() && state_ != State::kIdle && state_ != State::kWarmup &&
        state_ != State::kStop &&
        now - last_progress_ > std::max(kIdleAfter, kIdleIterations * last_gap_)) {
      before_idle_ = state_ == State::kProfile ? State::kBaseline : state_;
      drop_window();
      enter(State::kIdle, "no iteration ends");
    }
    return;
  }
  if (traces_->active()) {
    // What traces say and what is counted do not compare.
    traces_->stand_down();
    work_.recognise(true);
    restart("iterations are counted from here on");
  }
  last_progress_ = now;
  if (last_end_) last_gap_ = (ends.back() - *last_end_) / static_cast<std::int64_t>(ends.size());
  last_end_ = ends.back();
  const auto breaks = add_to_books(ends);
  if (state_ == State::kIdle) {
    enter(before_idle_, "iterations go on");
    if (decision_) apply(*decision_);
  }
  if (state_ == State::kWarmup) {
    warm_up_.add(ends);
    if (!came_back() && warm_up_.over()) decide();
    return;
  }
  if (window_) window_->add(ends, breaks);
  profile_->add_ends(ends);
}

// Nothing is counted: what the GPU's utilisation and power say goes for progress.
void Controller::follow_traces(Instant now) {
  switch (traces_->follow(now)) {
    case TraceMeter::Event::kTakesOver:
      work_.recognise(false);
      ledger_.traces_begin(now);
      ledger_.add_note(
          "no iterations were found in launches or marks by then: they are compared by their power "
          "traces");
      break;
    case TraceMeter::Event::kIdle:
      ledger_.add_idle(true, traces_->last_busy());
      if (!traces_->active() || state_ == State::kWarmup || state_ == State::kStop) break;
      before_idle_ = state_;
      drop_window();
      enter(State::kIdle, "the GPU does nothing");
      break;
    case TraceMeter::Event::kBusyAgain:
      ledger_.add_idle(false, now);
      if (state_ != State::kIdle) break;
      enter(before_idle_, "the GPU works again");
      if (decision_) apply(*decision_);
      break;
    case TraceMeter::Event::kNothing:
      break;
  }
  if (traces_->active() && state_ == State::kWarmup && traces_->warm(now)) decide();
}

// The last ends. What only now turns out to be the unit has nothing to be compared with any more.
void Controller::finish_progress(Instant now) {
  progress_.finish(now);
  for (std::string& note : progress_.take_notes()) ledger_.add_note(std::move(note));
  if (progress_.generation() == generation_) add_to_books(progress_.take_ends());
}

// Without counted iterations the time at each setting is booked (ledger.h).
void Controller::book_setting(const policy::ClockSetting& setting) {
  const Instant now = clock_.now();
  ledger_.add_setting(setting, now);
  if (!traces_->active()) return;
  for (const auto& gpu : gpus_) gpu->book().cut_at(now);
}

LiveStatus Controller::live_status() const {
  const Instant now = clock_.now();
  LiveStatus s{.state = state_,
               .elapsed_s = elapsed_s(now),
               .iterations = progress_.iterations().value_or(ledger_.iterations())};
  s.iterations_per_s = ledger_.rate(now);
  if (const auto power = newest_power(gpus_)) s.power_w = power->value();
  if (const auto sm = gpus_.front()->newest_sm_clock()) s.sm_mhz = to_mhz(*sm);
  s.setting = policy::to_string(decision_ ? decision_->setting : policy::ClockSetting{});
  return s;
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
  session.profiles = profile_->sections();
  finish_progress(now);
  for (const auto& gpu : gpus_) {
    for (const EnergyStretch& stretch : gpu->close(now)) add_to_books(*gpu, stretch);
    session.clock_writes += gpu->clock_writes();
    session.gpus.push_back(gpu->section());
    session.simulated = session.simulated || gpu->device().identity().simulated;
  }
  watch_device_events();
  ledger_.close(session);
  session.iterations = progress_.iterations().value_or(session.iterations);
  session.by_traces = traces_->active();
  session.progress_source =
      session.by_traces ? "power traces" : std::string(to_string(progress_.source()));
  session.launch_log = progress_.launch_log();
  if (std::string reason =
          why_nothing_is_claimed({.clocks_may_be_set = measure_only_reason_.empty(),
                                  .clock_writes = session.clock_writes,
                                  .several_jobs = several_jobs_,
                                  .work_changes = work_.changes(),
                                  .launches_lost = progress_.launches_lost()},
                                 session.saving);
      !reason.empty()) {
    session.saving.reset();
    session.no_saving_reason = std::move(reason);
  }
  // Then this is what everything else came from.
  if (!session.saving && !unknowable_why_.empty()) session.no_saving_reason = unknowable_why_;
  return session;
}

}  // namespace gpoeo::control
