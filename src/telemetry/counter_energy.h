// SPDX-License-Identifier: Apache-2.0
// Energy by the driver's energy counter: what it had reached at any instant. Its readings are put
// to the ticks they belong to (tick_clock.h); between two ticks the power samples give the shape.
//
// Thread rule: the sampler's thread.
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "telemetry/history.h"
#include "telemetry/source_judge.h"
#include "telemetry/tick_clock.h"
#include "telemetry/window_energy.h"

namespace gpoeo::telemetry {

class CounterEnergy {
 public:
  // All must outlive it.
  CounterEnergy(const History& history, const TickClock& ticks, const SourceJudge& judge,
                const EnergyMeterOptions& options)
      : history_(history), ticks_(ticks), judge_(judge), options_(options) {}

  // Energy in [t0, t1]; errors as EnergyMeter::energy.
  Result<WindowEnergy> between(Instant t0, Instant t1) const;

 private:
  // What the counter had reached at some instant, in one epoch of it.
  struct CounterAt {
    Joules energy;
    Joules uncertainty;
    int epoch;
  };
  // The best tick on either side of an instant; two of one epoch, or one.
  struct Sides {
    std::optional<Tick> before, after;
  };
  Sides sides_of(Instant t) const;
  Result<CounterAt> counter_at(Instant t) const;
  Result<CounterAt> interpolated(const Tick& before, Instant t, const Tick& after) const;
  Result<CounterAt> extrapolated(const Tick& tick, Instant t) const;
  // The part of the `step_j` joules in [from, to] that lies before `t`, 0..1: as the samples shape
  // it, else linear in time.
  double share_before(Instant from, Instant t, Instant to, double step_j) const;

  const History& history_;
  const TickClock& ticks_;
  const SourceJudge& judge_;
  const EnergyMeterOptions& options_;
};

}  // namespace gpoeo::telemetry
