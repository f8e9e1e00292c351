// SPDX-License-Identifier: Apache-2.0
// When did the energy counter really move? It stands still between ticks (100.00 ms apart on an
// H200, single ticks within 3 ms of the line: measured 2026-11-30, driver 580.159.04), so a value
// read at time t belongs to the last tick before t. Two readings with different values, less than a
// period apart, bound one tick in time; a line through these bounds gives the ticks' period and
// phase, and with it the tick of any other reading.
//
// Plain arithmetic, no device, no clock. Times are on the session's time line.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "base/clock.h"
#include "telemetry/history.h"

namespace gpoeo::telemetry {

// One tick of the counter: `energy` is its value from `time` on.
struct Tick {
  Instant time;
  Duration uncertainty{};  // one standard error of `time`
  Joules energy;
  int epoch = 0;  // ticks of different epochs (a reset lies between) must not be subtracted
};

// A tick as vague as this is no end of a comparison, nor of a window: another one will do.
inline constexpr Duration kVagueTick = std::chrono::milliseconds(40);

class TickClock {
 public:
  // A step back, or one of more than `max_power` times the elapsed time, is refused and counted: a
  // single odd value (sentinel) is dropped; when the next reading goes on from it, the counter was
  // reset or wrapped and a new epoch begins.
  explicit TickClock(Watts max_power) : max_power_(max_power) {}

  // Readings in order of time.
  void add(const CounterReading& reading);

  // Nothing until the life of one value and one tick were bounded; see next_after() for how sure.
  std::optional<Duration> period() const;
  // The first tick after `t`, predicted (its `energy` is 0); nothing while the period is unknown.
  std::optional<Tick> next_after(Instant t) const;
  // A tick whose predicted standard error is under this can still be told from its neighbours.
  Duration largest_useful_error() const;

  // Accepted readings, oldest first, at most 4096; `tick(i)` is what the i-th one shows, by all
  // that is known now. With an unknown or useless phase its uncertainty is a good part of a period.
  std::size_t size() const { return marks_.size(); }
  Tick tick(std::size_t i) const;
  std::uint64_t refused() const { return refused_; }

 private:
  // The tick lies in (low, high].
  struct Bound {
    Instant low;
    Instant high;
  };
  struct IndexedBound {
    Bound bound;
    long long index;
  };
  struct Mark {
    CounterReading reading;
    int epoch;
    std::optional<Bound> own;   // of the tick whose value this is
    std::optional<Bound> next;  // of the tick that ended it
  };
  // Tick number n is at origin + phase_s + n * period_s; variances of the fit.
  struct Line {
    Instant origin;
    double phase_s;
    double period_s;
    double var_phase_s2;
    double var_period_s2;
    double covariance_s2;
    double time_s(double n) const { return phase_s + n * period_s; }
    double variance_s2(double n) const {
      return var_phase_s2 + 2 * n * covariance_s2 + n * n * var_period_s2;
    }
    double number_at(Instant t) const;
  };

  bool plausible(const CounterReading& from, const CounterReading& to) const;
  void accept(const CounterReading& reading, int epoch);
  void learn_lifetime(Instant born_low, Instant born_high, Instant died_low, Instant died_high);
  void take_bound(const Bound& bound, bool neighbour);
  void restart_with(const Bound& bound, bool moved);
  void fit();
  bool phase_useful_at(Instant t) const;
  Tick tick_alone(std::size_t i) const;
  Tick at_bound(const Bound& bound, const CounterReading& reading) const;

  Watts max_power_;
  std::deque<Mark> marks_;
  std::optional<CounterReading> suspect_;
  int epoch_ = 0;
  std::uint64_t refused_ = 0;
  // What lifetimes of single values say about the period, seconds.
  double period_low_s_ = 0;
  double period_high_s_ = 0;   // 0: nothing known
  std::optional<Bound> born_;  // the tick that gave the present value
  Instant value_first_{};      // first reading of the present value, end of the call
  std::deque<IndexedBound> bounds_;
  std::size_t bounds_since_fit_ = 0;
  std::optional<Line> line_;
};

}  // namespace gpoeo::telemetry
