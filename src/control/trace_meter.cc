// SPDX-License-Identifier: Apache-2.0
#include "control/trace_meter.h"

#include <cmath>

#include "iteration/period.h"

namespace gpoeo::control {
namespace {

constexpr Duration kIdleAfter = std::chrono::seconds(10);
// How long a busy GPU is let run before its trace counts.
constexpr Duration kWarmUp = std::chrono::seconds(5);
// Behind the longest window that was asked for.
constexpr Duration kReadingsLate = std::chrono::seconds(15);
// Ratios are what counts; a rhythm whose period cannot be told is called a second long.
constexpr double kUnknownPeriod_s = 1.0;

}  // namespace

TraceMeter::TraceMeter(GpuGroup gpus, std::optional<Duration> after, Instant now)
    : gpus_(gpus), after_(after), busy_since_(now), last_busy_(now) {}

TraceMeter::Event TraceMeter::follow(Instant now) {
  if (!after_) return Event::kNothing;
  if (!gpus_.front()->idle(now)) {
    last_busy_ = now;
    if (idle_) {
      idle_ = false;
      busy_since_ = now;
      return Event::kBusyAgain;
    }
  } else if (now - last_busy_ > kIdleAfter) {
    busy_since_ = now;
    if (!idle_) {
      idle_ = true;
      return Event::kIdle;
    }
  }
  if (active_ || now - busy_since_ < *after_) return Event::kNothing;
  active_ = true;
  busy_since_ = now;
  return Event::kTakesOver;
}

bool TraceMeter::warm(Instant now) const { return !idle_ && now - busy_since_ >= kWarmUp; }

void TraceMeter::stand_down() {
  active_ = false;
  after_.reset();
  window_.reset();
  reference_.reset();
}

void TraceMeter::new_work(Instant now) {
  reference_.reset();
  window_.reset();
  busy_since_ = now;
}

// An unmeasured clock must not stay: readings that have not come for long never will.
std::optional<Result<TraceMeter::Measured>> TraceMeter::unreadable(Instant now) const {
  if (now < window_->latest_answer() + kReadingsLate) return std::nullopt;
  return Result<Measured>(make_error(ErrorKind::kIo, "power or energy cannot be read"));
}

std::optional<Result<TraceMeter::Measured>> TraceMeter::poll(Instant now) {
  const auto known =
      window_->look(gpus_.front()->history(), now, reference_ ? &*reference_ : nullptr);
  if (!known) return unreadable(now);
  if (!*known) return std::unexpected(known->error());
  const TraceWindow::Timing& timing = **known;
  Watts power;
  double variance = 0;
  Measured measured{.from = timing.from, .to = timing.to, .observation = {}};
  policy::Observation& o = measured.observation;
  for (const auto& gpu : gpus_) {
    const auto energy = gpu->energy(timing.from, timing.to);
    if (!energy) return unreadable(now);  // the readings that close it are on their way
    power += energy->mean_power();
    const double error = (energy->uncertainty / energy->duration).value();
    variance += error * error;
    o.held = o.held && gpu->held();
  }
  if (!reference_) {
    reference_ = window_->trace();
    const auto period = iteration::estimate_period(*reference_);
    reference_period_ = Seconds(period.period_s.value_or(kUnknownPeriod_s));
  }
  o.time = reference_period_ * timing.time_ratio;
  o.time_error = reference_period_ * timing.error;
  o.energy = power * o.time;
  o.energy_error = o.energy * std::hypot(std::sqrt(variance) / power.value(), timing.error);
  o.iterations = static_cast<std::size_t>(to_seconds(timing.to - timing.from) / o.time);
  o.sm_clock = gpus_.front()->condition(timing.from, timing.to).sm_clock;
  return measured;
}

}  // namespace gpoeo::control
