// SPDX-License-Identifier: Apache-2.0
#include "control/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "control/observe.h"
#include "control/problem.h"

namespace gpoeo::control {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(200);
// Iterations before the first window, at least: the first ones compile, allocate and fill caches.
constexpr std::size_t kWarmupEnds = 10;
constexpr Duration kEnergyPatience = std::chrono::seconds(5);
// Of whole runs: what closes one is booked each 5 s and may be late; beyond the second, fine
// readings are no longer kept (telemetry/history.h: 10 minutes at 50 Hz); repeats of runs scatter
// so much.
constexpr Duration kRunPatience = std::chrono::seconds(15);
constexpr Duration kLongRun = std::chrono::minutes(8);
constexpr double kRunError = 0.005;
constexpr unsigned kMostDropped = 3;
constexpr unsigned kMostStartedOver = 3;
// The same work at the same clocks never differs by so much; a micro-step and a step do.
constexpr double kAnotherUnit = 0.25;

// Fisher and Yates, with our own draws: std::shuffle is not the same everywhere.
void shuffle(std::vector<policy::ClockSetting>& settings, std::mt19937_64& random) {
  for (std::size_t i = settings.size(); i > 1; --i)
    std::swap(settings[i - 1], settings[random() % i]);
}

}  // namespace

std::vector<policy::ClockSetting> sweep_order(const std::vector<policy::ClockSetting>& settings,
                                              int repeats, int default_every, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<policy::ClockSetting> order = {policy::ClockSetting{}};
  int since_default = 0;
  for (int r = 0; r < repeats; ++r) {
    std::vector<policy::ClockSetting> round = settings;
    shuffle(round, random);
    for (const policy::ClockSetting& setting : round) {
      if (since_default >= default_every) {
        order.emplace_back();
        since_default = 0;
      }
      order.push_back(setting);
      ++since_default;
    }
  }
  if (since_default > 0) order.emplace_back();
  return order;
}

Sweep::Sweep(SweepInput input)
    : clock_(*input.clock),
      goal_(input.goal),
      whole_runs_(input.whole_runs),
      soak_(input.soak),
      warm_up_(input.warm_up),
      silence_(input.silence),
      started_(input.clock->now()) {
  GPOEO_CHECK(!input.gpus.empty());
  for (GpuInput& gpu : input.gpus)
    gpus_.push_back(std::make_unique<GpuChannel>(std::move(gpu), clock_));
}

Sweep::~Sweep() = default;

policy::Problem Sweep::choices() const { return control::choices(gpus_); }

void Sweep::attach(ProgressReader& progress) {
  progress_ = &progress;
  generation_ = progress.generation();
  last_end_ = clock_.now();
  window_.reset();
  state_ = State::kWarmup;
  warm_from_ = clock_.now();
  warm_ends_ = 0;
  // A job that was started again may not be quite what it was: default clocks say so.
  extra_default_ = !points_.empty() && !complete();
  if (!over()) restore_all();
}

policy::ClockSetting Sweep::wanted() const {
  return extra_default_ ? policy::ClockSetting{} : order_[next_];
}

Instant Sweep::step() {
  const Instant now = clock_.now();
  Instant next = now + kTick;
  for (const auto& gpu : gpus_) {
    const GpuChannel::Polled polled = gpu->poll(now);
    next = std::min(next, polled.next_poll);
    if (whole_runs_) {
      if (polled.stretch) stretches_.push_back(*polled.stretch);
      static_cast<void>(gpu->settled(now));  // for held(), nothing waits for it
    }
    for (const std::string& note : gpu->take_notes()) event_(note);
    if (gpu->lost()) release("a GPU was lost");
  }
  if (over() || whole_runs_ || progress_ == nullptr) return next;
  take_progress(now);
  if (over()) return next;
  if (state_ == State::kWarmup) {
    if (warm_ends_ >= kWarmupEnds && to_seconds(now - warm_from_) >= warm_up_) set_clocks();
  } else if (state_ == State::kSettling) {
    Instant settled_at{};
    for (const auto& gpu : gpus_) {
      const auto at = gpu->settled(now);
      if (!at) return next;
      settled_at = std::max(settled_at, *at);
    }
    if (now < settled_at + to_duration(soak_)) return next;
    open_window(settled_at + to_duration(soak_));
  } else {
    await_window(now);
  }
  return next;
}

void Sweep::begin_run() {
  if (over()) return;
  stretches_.clear();
  set_clocks();
  static_cast<void>(gpus_.front()->device().counters());
}

bool Sweep::end_run(Instant from, Instant to) {
  if (over()) return true;
  if (auto observation = observe_run(from, to)) {
    keep(*observation);
    return true;
  }
  if (clock_.now() - to < kRunPatience) return false;
  release("the energy of a run cannot be read");
  return true;
}

std::optional<policy::Observation> Sweep::observe_run(Instant from, Instant to) {
  if (to - from < kLongRun) {
    const Instant ends[] = {from, to};
    return observe_window(gpus_, ends, kRunError, started_);
  }
  // Longer than readings are kept: summed up from the stretches that they were booked in.
  double joules = 0, covered_s = 0;
  for (const EnergyStretch& s : stretches_) {
    const Duration inside = std::min(s.to, to) - std::max(s.from, from);
    if (inside <= Duration::zero()) continue;
    const double share = to_seconds(inside) / to_seconds(s.to - s.from);
    joules += share * s.energy.value();
    covered_s += to_seconds(inside).value();
  }
  const double asked_s = to_seconds(to - from).value() * static_cast<double>(gpus_.size());
  constexpr double kCovered = 0.98;
  if (covered_s < kCovered * asked_s) return std::nullopt;
  policy::Observation o;
  o.iterations = 1;
  o.time = to_seconds(to - from);
  o.time_error = o.time * kRunError;
  o.energy = Joules(joules * asked_s / covered_s);
  o.energy_error = o.energy * kRunError;
  for (const auto& gpu : gpus_) o.held = o.held && gpu->held();
  o.at = Seconds((to_seconds(from - started_) + to_seconds(to - started_)).value() / 2);
  return o;
}

void Sweep::take_progress(Instant now) {
  progress_->poll(now);
  for (const std::string& note : progress_->take_notes()) event_(note);
  source_ = progress_->source();
  if (progress_->several_jobs())
    return release("several processes launch work of their own, and only one could be followed");
  if (progress_->generation() != generation_) {
    generation_ = progress_->generation();
    if (state_ != State::kWarmup) restart(now, "iterations are counted anew");
  }
  const std::vector<Instant> ends = progress_->take_ends();
  if (!ends.empty()) {
    last_end_ = now;
    warm_ends_ += ends.size();
    if (window_) window_->add(ends);
  } else if (to_seconds(now - last_end_) > silence_) {
    release(fmt::format(
        "no iteration ended for {:.0f} s; a sweep needs a job whose iterations can be counted (its "
        "launch log or step marks)",
        silence_.value()));
  }
}

// The window under way is of no use; what was measured before stays until it is known better.
void Sweep::restart(Instant now, const std::string& why) {
  event_(why);
  window_.reset();
  state_ = State::kWarmup;
  warm_from_ = now;
  warm_ends_ = 0;
  extra_default_ = !points_.empty();
  restore_all();
}

void Sweep::set_clocks() {
  const policy::ClockSetting setting = wanted();
  for (const auto& gpu : gpus_) {
    if (Status set = gpu->set_clocks(setting); !set)
      return release("clocks cannot be set: " + set.error().text);
  }
  state_ = State::kSettling;
}

void Sweep::open_window(Instant from) {
  state_ = State::kMeasuring;
  window_.emplace(goal_, from);
  // The first call opens the counters' window; a card without them says so, and that is that.
  static_cast<void>(gpus_.front()->device().counters());
}

void Sweep::await_window(Instant now) {
  if (!window_->ready()) return;
  auto observation = observe_window(gpus_, window_->ends(), window_->relative_error(), started_);
  if (observation) {
    dropped_ = 0;
    return keep(*observation);
  }
  // The readings that close the window are on their way.
  if (now - window_->ends().back() < kEnergyPatience) return;
  if (++dropped_ >= kMostDropped) return release("energy cannot be read");
  event_("a window was dropped because its energy could not be read");
  open_window(now);
}

// Whether the unit that is counted has changed: default clocks then and now differ beyond any work.
bool Sweep::another_unit(const policy::Observation& now) const {
  if (!now.setting.is_default()) return false;
  for (const SweepPoint& point : points_) {
    const policy::Observation& before = point.observation;
    if (before.setting.is_default())
      return std::abs(std::log(now.time / before.time)) > kAnotherUnit;
  }
  return false;
}

void Sweep::keep(policy::Observation observation) {
  observation.setting = wanted();
  if (another_unit(observation)) {
    if (++started_over_ >= kMostStartedOver)
      return release(
          "the work at default clocks changes again and again: its iterations do not compare");
    event_("iterations are of another length than before: the sweep starts over");
    points_.clear();
    next_ = 0;
    extra_default_ = false;
  }
  SweepPoint point{.observation = observation, .counters = {}};
  if (auto counters = gpus_.front()->device().counters()) point.counters = *counters;
  points_.push_back(std::move(point));
  if (extra_default_) {
    extra_default_ = false;
  } else {
    ++next_;
  }
  window_.reset();
  event_(fmt::format("{}/{} {}: {:.4g} s, {:.4g} W over {} iterations{}", next_, order_.size(),
                     policy::to_string(observation.setting), observation.time.value(),
                     (observation.energy / observation.time).value(), observation.iterations,
                     observation.held ? "" : ", could not hold that clock"));
  changed_();
  if (complete()) {
    restore_all();
  } else if (!whole_runs_) {
    set_clocks();
  }
}

void Sweep::restore_all() {
  // What fails is in the channel's notes, and is tried again by finish() and the guards.
  for (const auto& gpu : gpus_) static_cast<void>(gpu->restore());
}

void Sweep::release(const std::string& why) {
  if (over()) return;
  stopped_ = why;
  window_.reset();
  restore_all();
}

bool Sweep::finish() {
  restore_all();
  for (const auto& gpu : gpus_)
    for (const std::string& note : gpu->take_notes()) event_(note);
  return std::ranges::none_of(gpus_, [](const auto& gpu) { return gpu->touched(); });
}

}  // namespace gpoeo::control
