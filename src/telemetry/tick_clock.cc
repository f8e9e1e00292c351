// SPDX-License-Identifier: Apache-2.0
#include "telemetry/tick_clock.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace gpoeo::telemetry {
namespace {

constexpr std::size_t kMarksKept = 4096;
constexpr std::size_t kBoundsKept = 256;
// Beyond the first few bounds one more says little: fit again when they are more by this share.
constexpr std::size_t kFitFirst = 24;
constexpr std::size_t kFitShare = 6;
// Believed while nothing is known; an H200 and an A100 both tick each 100 ms.
constexpr double kAssumedPeriodS = 0.1;
// Scatter of single ticks about the line, in periods (H200: 1.4 ms at the 5th and 95th percentile).
constexpr double kJitter = 0.015;
// A lifetime may be this much off the period for the same reason, and for slow calls.
constexpr double kLifetimeSlack = 0.1;
// 3 kW for a hundred years: no counter gets there, every sentinel is above.
constexpr double kAbsurdJoules = 1e13;
// Beyond this share of a period (one standard error) a tick can no longer be numbered.
constexpr double kNumberable = 0.16;
// Rounds of moving a line into its bounds; most are in after two or three.
constexpr int kFitRounds = 12;
// A line through fewer bounds than this may be wrong altogether.
constexpr std::size_t kFewBounds = 8;

double seconds_between(Instant from, Instant to) { return to_seconds(to - from).value(); }
Instant plus_seconds(Instant t, double s) { return t + to_duration(Seconds(s)); }
double square(double x) { return x * x; }
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
  if (suspect_ && plausible(*suspect_, reading)) {
    suspect_.reset();
    accept(reading, ++epoch_);
    return;
  }
  ++refused_;
  suspect_ = reading;
}

void TickClock::accept(const CounterReading& reading, int epoch) {
  Mark mark{reading, epoch, std::nullopt, std::nullopt};
  if (marks_.empty() || marks_.back().epoch != epoch) {
    born_.reset();
    value_first_ = reading.time;
  } else if (Mark& last = marks_.back(); last.reading.energy != reading.energy) {
    const Bound bound{last.reading.before, reading.time};
    if (born_) learn_lifetime(born_->low, value_first_, last.reading.before, reading.time);
    // Each tick shows another value, so the ticks that began and ended one value are neighbours.
    const bool neighbour = born_ && !bounds_.empty() && bounds_.back().bound.low == born_->low;
    mark.own = bound;
    last.next = bound;
    born_ = bound;
    value_first_ = reading.time;
    take_bound(bound, neighbour);
  } else {
    mark.own = last.own;  // the same value, so the same tick
  }
  marks_.push_back(mark);
  if (marks_.size() > kMarksKept) marks_.pop_front();
}

void TickClock::learn_lifetime(Instant born_low, Instant born_high, Instant died_low,
                               Instant died_high) {
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

// The phase is lost, and with `moved` perhaps the period too.
void TickClock::restart_with(const Bound& bound, bool moved) {
  if (line_) {
    // A period that many ticks agreed on outlives the phase; one from a few does not.
    if (moved && bounds_.size() < kFewBounds) {
      period_low_s_ = period_high_s_ = 0;
    } else {
      const double margin_s = 4 * std::sqrt(line_->var_period_s2) + 0.002 * line_->period_s;
      period_low_s_ = std::max(period_low_s_, line_->period_s - margin_s);
      period_high_s_ = std::min(period_high_s_, line_->period_s + margin_s);
    }
  }
  line_.reset();
  bounds_.clear();
  if (period_high_s_ <= 0 || period_low_s_ <= 0) return;
  bounds_.push_back({bound, 0});
  fit();
}

void TickClock::take_bound(const Bound& bound, bool neighbour) {
  const double length_s = seconds_between(bound.low, bound.high);
  const double longest_s = line_ ? 0.95 * line_->period_s : period_low_s_;
  if (length_s >= longest_s) return;  // may hold two ticks
  if (!line_) {
    restart_with(bound, false);
    return;
  }
  const double x = line_->number_at(middle(bound.low, bound.high));
  const double n = neighbour ? static_cast<double>(bounds_.back().index + 1) : std::round(x);
  const double error_s = std::sqrt(line_->variance_s2(n));
  if (!neighbour && error_s > kNumberable * line_->period_s) {
    restart_with(bound, false);
    return;
  }
  // Not where the line says: the driver was reloaded, or the first fit was wrong.
  const double off_s = std::abs(x - n) * line_->period_s;
  if (off_s > length_s / 2 + 4 * error_s + 4 * kJitter * line_->period_s) {
    restart_with(bound, true);
    return;
  }
  bounds_.push_back({bound, static_cast<long long>(n)});
  if (bounds_.size() > kBoundsKept) bounds_.pop_front();
  ++bounds_since_fit_;
  if (bounds_.size() <= kFitFirst || bounds_since_fit_ >= bounds_.size() / kFitShare) fit();
}

// Least squares of the distances from the line to the bounds: zero inside a bound. Done by turns:
// fit a line to one point a bound, move each point to where the line passes its bound. The range
// that lifetimes leave for the period is a prior, so that one bound gives a line already.
void TickClock::fit() {
  bounds_since_fit_ = 0;
  struct Point {
    double n, low_s, high_s, t_s, weight;
  };
  const Instant origin = middle(bounds_.front().bound.low, bounds_.front().bound.high);
  const double prior_s = 0.5 * (period_low_s_ + period_high_s_);
  const double prior_weight =
      1.0 / std::max(square(period_high_s_ - period_low_s_) / 12, square(1e-4 * prior_s));
  const double jitter_s = kJitter * prior_s;
  std::vector<Point> points;
  points.reserve(bounds_.size());
  double w = 0, wn = 0;
  for (const IndexedBound& b : bounds_) {
    const double low_s = seconds_between(origin, b.bound.low);
    const double high_s = seconds_between(origin, b.bound.high);
    const double length_s = high_s - low_s;
    points.push_back({static_cast<double>(b.index), low_s, high_s, 0.5 * (low_s + high_s),
                      1.0 / (length_s * length_s / 12 + jitter_s * jitter_s)});
    w += points.back().weight;
    wn += points.back().weight * points.back().n;
  }
  const double mean_n = wn / w;
  double nn = prior_weight;
  for (const Point& p : points) nn += p.weight * (p.n - mean_n) * (p.n - mean_n);
  Line line{};
  line.origin = origin;
  for (int round = 0; round < kFitRounds; ++round) {
    double wt = 0;
    for (const Point& p : points) wt += p.weight * p.t_s;
    const double mean_t = wt / w;
    double nt = prior_weight * prior_s;
    for (const Point& p : points) nt += p.weight * (p.n - mean_n) * (p.t_s - mean_t);
    line.period_s = nt / nn;
    line.phase_s = mean_t - mean_n * line.period_s;
    bool all_inside = true;
    for (Point& p : points) {
      const double on_line_s = line.time_s(p.n);
      p.t_s = std::clamp(on_line_s, p.low_s, p.high_s);
      all_inside = all_inside && p.t_s == on_line_s;
    }
    if (all_inside) break;
  }
  // Polls in step with the ticks bound each tick the same way, so their errors do not average out:
  // the phase is no better known than the part that all bounds have in common.
  double low_s = -1e9, high_s = 1e9;
  for (const Point& p : points) {
    low_s = std::max(low_s, p.low_s - p.n * line.period_s);
    high_s = std::min(high_s, p.high_s - p.n * line.period_s);
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

Duration TickClock::largest_useful_error() const {
  return line_ ? to_duration(Seconds(kNumberable * line_->period_s)) : Duration{};
}

Tick TickClock::at_bound(const Bound& bound, const CounterReading& reading) const {
  const double length_s = seconds_between(bound.low, bound.high);
  Tick tick{middle(bound.low, bound.high), to_duration(Seconds(length_s / std::sqrt(12.0))),
            reading.energy, 0};
  if (!line_) return tick;
  const double n = std::round(line_->number_at(tick.time));
  const double error_s = std::sqrt(line_->variance_s2(n) + square(kJitter * line_->period_s));
  const Instant predicted = plus_seconds(line_->origin, line_->time_s(n));
  if (error_s < to_seconds(tick.uncertainty).value()) {
    tick.time = std::clamp(predicted, bound.low, bound.high);
    tick.uncertainty = to_duration(Seconds(error_s));
  }
  return tick;
}

bool TickClock::phase_useful_at(Instant t) const {
  return std::sqrt(line_->variance_s2(line_->number_at(t))) < kNumberable * line_->period_s;
}

Tick TickClock::tick(std::size_t i) const {
  // Readings of one value show one tick, so the best placed of them speaks for all.
  constexpr std::size_t kLookAround = 3;
  Tick best = tick_alone(i);
  const auto consider = [&](std::size_t j) {
    const bool same =
        marks_[j].epoch == marks_[i].epoch && marks_[j].reading.energy == marks_[i].reading.energy;
    if (!same) return false;
    if (const Tick tick = tick_alone(j); tick.uncertainty < best.uncertainty) best = tick;
    return true;
  };
  for (std::size_t j = i; j-- > 0 && i - j <= kLookAround && consider(j);) {
  }
  for (std::size_t j = i + 1; j < marks_.size() && j - i <= kLookAround && consider(j); ++j) {
  }
  return best;
}

Tick TickClock::tick_alone(std::size_t i) const {
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
  } else if (line_ && phase_useful_at(mark.reading.time)) {
    const double x = line_->number_at(middle(mark.reading.before, mark.reading.time));
    const double n = std::floor(x);
    const double error_s = std::sqrt(line_->variance_s2(n) + square(kJitter * line_->period_s));
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
