// SPDX-License-Identifier: Apache-2.0
#include "telemetry/tick_clock.h"

#include <algorithm>
#include <cmath>

namespace gpoeo::telemetry {
namespace {

constexpr std::size_t kMarksKept = 4096;
constexpr std::size_t kBoundsKept = 64;
// Believed while nothing is known; an H200 and an A100 both tick each 100 ms.
constexpr double kAssumedPeriodS = 0.1;
// Scatter of single ticks about the line (H200: 1.4 ms at the 5th and 95th percentile).
constexpr double kJitterS = 0.002;
// A lifetime may be this much off the period for the same reason, and for slow calls.
constexpr double kLifetimeSlack = 0.1;
// 3 kW for a hundred years: no counter gets there, every sentinel is above.
constexpr double kAbsurdJoules = 1e13;
// Beyond this share of a period (one standard error) a tick can no longer be numbered.
constexpr double kNumberable = 0.16;

double seconds_between(Instant from, Instant to) { return to_seconds(to - from).value(); }
Instant plus_seconds(Instant t, double s) { return t + to_duration(Seconds(s)); }
Instant middle(Instant a, Instant b) { return a + (b - a) / 2; }

}  // namespace

double TickClock::Line::number_at(Instant t) const {
  return (seconds_between(origin, t) - phase_s) / period_s;
}

bool TickClock::plausible(const CounterReading& from, const CounterReading& to) const {
  constexpr double kSlackS = 1.0;  // ticks late, calls long
  const double step_j = (to.energy - from.energy).value();
  return step_j >= 0 &&
         step_j <= max_power_.value() * (seconds_between(from.before, to.time) + kSlackS);
}

void TickClock::add(const CounterReading& reading) {
  const double value_j = reading.energy.value();
  if (!std::isfinite(value_j) || value_j < 0 || value_j > kAbsurdJoules) {
    ++refused_;
    return;
  }
  if (marks_.empty() || plausible(marks_.back().reading, reading)) {
    suspect_.reset();
    accept(reading, epoch_);
    return;
  }
  ++refused_;
  if (suspect_ && plausible(*suspect_, reading)) {
    suspect_.reset();
    accept(reading, ++epoch_);
  } else {
    suspect_ = reading;
  }
}

void TickClock::accept(const CounterReading& reading, int epoch) {
  Mark mark{reading, epoch, std::nullopt, std::nullopt};
  if (marks_.empty() || marks_.back().epoch != epoch) {
    born_.reset();
    value_first_ = reading.time;
  } else if (Mark& last = marks_.back(); last.reading.energy != reading.energy) {
    const Bound bound{last.reading.before, reading.time};
    if (born_) learn_lifetime(born_->low, value_first_, last.reading.before, reading.time);
    mark.own = bound;
    last.next = bound;
    born_ = bound;
    value_first_ = reading.time;
    take_bound(bound);
  } else {
    mark.own = last.own;  // the same value, so the same tick
  }
  marks_.push_back(mark);
  if (marks_.size() > kMarksKept) marks_.pop_front();
}

void TickClock::learn_lifetime(Instant born_low, Instant born_high, Instant died_low,
                               Instant died_high) {
  if (line_) return;  // the line knows better
  const double longest_s = seconds_between(born_low, died_high) * (1 + kLifetimeSlack);
  const double shortest_s =
      std::max(0.0, seconds_between(born_high, died_low) * (1 - kLifetimeSlack));
  if (period_high_s_ > 0) {
    period_low_s_ = std::max(period_low_s_, shortest_s);
    period_high_s_ = std::min(period_high_s_, longest_s);
    if (period_low_s_ <= period_high_s_) return;
  }
  period_low_s_ = shortest_s;
  period_high_s_ = longest_s;
}

void TickClock::take_bound(const Bound& bound) {
  const double length_s = seconds_between(bound.low, bound.high);
  const Instant mid = middle(bound.low, bound.high);
  const auto restart = [&] {
    bounds_.clear();
    bounds_.push_back({bound, 0});
    if (line_) {
      period_low_s_ = line_->period_s * (1 - kLifetimeSlack);
      period_high_s_ = line_->period_s * (1 + kLifetimeSlack);
    }
    line_.reset();
  };
  if (line_) {
    if (length_s >= 0.95 * line_->period_s) return;
    const double x = line_->number_at(mid);
    const double n = std::round(x);
    const double error_s = std::sqrt(line_->variance_s2(n) + length_s * length_s / 12);
    const double off_s = std::abs(x - n) * line_->period_s;
    // Too long since the last bound, or the ticks are not where the line says.
    if (error_s > kNumberable * line_->period_s + length_s / 3.5 ||
        off_s > length_s / 2 + 4 * error_s + 4 * kJitterS) {
      restart();
      return;
    }
    bounds_.push_back({bound, static_cast<long long>(n)});
  } else {
    if (period_low_s_ <= 0 || length_s >= period_low_s_) return;
    if (bounds_.empty()) {
      restart();
      return;
    }
    const Bound& last = bounds_.back().bound;
    const double period_s = 0.5 * (period_low_s_ + period_high_s_);
    const double n = std::round(seconds_between(middle(last.low, last.high), mid) / period_s);
    const double slack_s = 0.5 * (n * (period_high_s_ - period_low_s_) + length_s +
                                  seconds_between(last.low, last.high));
    if (n < 1 || slack_s >= 0.5 * period_s) {
      restart();
      return;
    }
    bounds_.push_back({bound, bounds_.back().index + static_cast<long long>(n)});
  }
  if (bounds_.size() > kBoundsKept) bounds_.pop_front();
  fit();
}

void TickClock::fit() {
  // Weighted least squares of the bounds' middles over their numbers.
  const Instant origin = middle(bounds_.front().bound.low, bounds_.front().bound.high);
  double w = 0, wn = 0, wt = 0;
  const auto weight = [](const Bound& b) {
    const double length_s = seconds_between(b.low, b.high);
    return 1.0 / (length_s * length_s / 12 + kJitterS * kJitterS);
  };
  for (const IndexedBound& b : bounds_) {
    const double g = weight(b.bound);
    w += g;
    wn += g * static_cast<double>(b.index);
    wt += g * seconds_between(origin, middle(b.bound.low, b.bound.high));
  }
  const double mean_n = wn / w;
  const double mean_t = wt / w;
  double nn = 0, nt = 0;
  for (const IndexedBound& b : bounds_) {
    const double g = weight(b.bound);
    const double dn = static_cast<double>(b.index) - mean_n;
    nn += g * dn * dn;
    nt += g * dn * (seconds_between(origin, middle(b.bound.low, b.bound.high)) - mean_t);
  }
  if (nn <= 0 || nt <= 0) return;
  Line line{};
  line.origin = origin;
  line.period_s = nt / nn;
  line.phase_s = mean_t - mean_n * line.period_s;
  // Polls in step with the ticks bound each tick the same way, so their errors do not average out:
  // the phase is no better known than the part that all bounds have in common.
  double low_s = -1e9, high_s = 1e9;
  for (const IndexedBound& b : bounds_) {
    const double tick_s = static_cast<double>(b.index) * line.period_s;
    low_s = std::max(low_s, seconds_between(origin, b.bound.low) - tick_s);
    high_s = std::min(high_s, seconds_between(origin, b.bound.high) - tick_s);
  }
  const double common_s = std::max(0.0, high_s - low_s);
  line.var_period_s2 = 1.0 / nn;
  line.var_phase_s2 = 1.0 / w + mean_n * mean_n / nn + common_s * common_s / 12;
  line.covariance_s2 = -mean_n / nn;
  line_ = line;
}

std::optional<Duration> TickClock::period() const {
  if (!line_) return std::nullopt;
  return to_duration(Seconds(line_->period_s));
}

std::optional<Tick> TickClock::next_after(Instant t) const {
  if (!line_) return std::nullopt;
  const double n = std::floor(line_->number_at(t)) + 1;
  Tick tick;
  tick.time = plus_seconds(line_->origin, line_->time_s(n));
  tick.uncertainty = to_duration(Seconds(std::sqrt(line_->variance_s2(n))));
  tick.epoch = epoch_;
  return tick;
}

Tick TickClock::at_bound(const Bound& bound, const CounterReading& reading) const {
  const double length_s = seconds_between(bound.low, bound.high);
  Tick tick{middle(bound.low, bound.high), to_duration(Seconds(length_s / std::sqrt(12.0))),
            reading.energy, 0};
  if (!line_) return tick;
  const double n = std::round(line_->number_at(tick.time));
  const double error_s = std::sqrt(line_->variance_s2(n) + kJitterS * kJitterS);
  const Instant predicted = plus_seconds(line_->origin, line_->time_s(n));
  if (error_s < to_seconds(tick.uncertainty).value()) {
    tick.time = std::clamp(predicted, bound.low, bound.high);
    tick.uncertainty = to_duration(Seconds(error_s));
  }
  return tick;
}

Tick TickClock::tick(std::size_t i) const {
  const Mark& mark = marks_[i];
  const double period_s = line_                ? line_->period_s
                          : period_high_s_ > 0 ? std::min(period_high_s_, kAssumedPeriodS)
                                               : kAssumedPeriodS;
  const auto short_enough = [&](const std::optional<Bound>& b) {
    return b && seconds_between(b->low, b->high) < period_s;
  };
  Tick tick;
  if (short_enough(mark.own)) {
    tick = at_bound(*mark.own, mark.reading);
  } else if (line_ && short_enough(mark.next)) {
    tick = at_bound(*mark.next, mark.reading);
    tick.time = plus_seconds(tick.time, -period_s);
  } else if (line_) {
    const double x = line_->number_at(middle(mark.reading.before, mark.reading.time));
    const double n = std::floor(x);
    const double error_s = std::sqrt(line_->variance_s2(n) + kJitterS * kJitterS);
    const double half_call_s = 0.5 * seconds_between(mark.reading.before, mark.reading.time);
    const double margin = (2 * error_s + half_call_s) / period_s;
    tick.time = plus_seconds(line_->origin, line_->time_s(n));
    const bool certain = x - n > margin && x - n < 1 - margin;
    tick.uncertainty = to_duration(Seconds(certain ? error_s : 0.5 * period_s));
  } else {
    // Some time in the last period, and not before the value before it was still there.
    Instant earliest = plus_seconds(mark.reading.time, -period_s);
    if (mark.own) earliest = std::max(earliest, mark.own->low);
    tick.time = middle(earliest, mark.reading.time);
    tick.uncertainty =
        to_duration(Seconds(seconds_between(earliest, mark.reading.time) / std::sqrt(12.0)));
  }
  tick.energy = mark.reading.energy;
  tick.epoch = mark.epoch;
  return tick;
}

}  // namespace gpoeo::telemetry
