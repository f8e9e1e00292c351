// SPDX-License-Identifier: Apache-2.0
// When did the energy counter really move? It stands still between ticks (100 ms apart on an
// H200), so a value read at time t belongs to the last tick before t. Two readings with different
// values and not more than a tick apart bound one tick in time; from these bounds this class
// estimates the ticks' period and phase, and gives every reading the time of its tick.
//
// Plain arithmetic, no device, no clock. Times are on the session's time line.
#pragma once

#include <optional>
#include <vector>

#include "base/clock.h"
#include "telemetry/history.h"

namespace gpoeo::telemetry {

struct Tick {
  Instant time;
  Duration uncertainty{};  // the tick lies within time +- this
  Joules energy;           // the counter's value from this tick on
};

class TickClock {
 public:
  // Readings in order of time. A step back, or one of more than `max_power` times the elapsed time
  // (wrap, reset, sentinel), starts afresh and is counted.
  explicit TickClock(Watts max_power) : max_power_(max_power) {}

  void add(const CounterReading& reading);

  // Known once at least two ticks were bounded; the counter may also be continuous (a new value at
  // each reading however close): then period() is 0 and a reading is its own tick.
  std::optional<Duration> period() const { return period_; }
  // The next tick after `t`, with the half-width of its bound; nothing while unknown.
  std::optional<Tick> next_after(Instant t) const;
  // The tick whose value `reading` shows. Without a known period: anywhere in the last period.
  Tick tick_of(const CounterReading& reading) const;
  std::size_t rejected_steps() const { return rejected_steps_; }
  void forget();

 private:
  struct Bound {
    Instant low;   // the tick is later than this
    Instant high;  // and not later than this
    long long index = 0;
  };
  void fit();

  Watts max_power_;
  std::optional<CounterReading> previous_;
  std::vector<Bound> bounds_;
  std::optional<Duration> period_;
  std::size_t rejected_steps_ = 0;
};

}  // namespace gpoeo::telemetry
