// SPDX-License-Identifier: Apache-2.0
// Energy over a window of time, with an uncertainty and the source it came from.
//
// Two sources. (a) The integral of the driver's power samples: a sample stands for the time since
// the one before it; at the window's edges it counts by its share; a gap is filled from its
// neighbours and widens the uncertainty. (b) The energy counter, whose readings tick_clock.h puts
// to the ticks they belong to; between two ticks the power samples give the shape.
//
// Which of the two is trusted: source_judge.h.
//
// Trusted samples are scaled to the counter by what is known of their difference (weighted against
// a sensor's usual drift of 0.3 %), so that the figures are the counter's, with the samples'
// resolution.
//
// Thread rule: the sampler's thread.
#pragma once

#include <optional>

#include "base/clock.h"
#include "base/result.h"
#include "telemetry/counter_energy.h"
#include "telemetry/energy_schedule.h"
#include "telemetry/history.h"
#include "telemetry/source_judge.h"
#include "telemetry/tick_clock.h"
#include "telemetry/window_energy.h"

namespace gpoeo::telemetry {

class EnergyMeter {
 public:
  // `history` must outlive it.
  explicit EnergyMeter(const History& history, EnergyMeterOptions options = {});
  EnergyMeter(const EnergyMeter&) = delete;  // its parts refer to one another
  EnergyMeter& operator=(const EnergyMeter&) = delete;

  // Takes in what the sampler has read since the last call and judges the sources. Call after each
  // poll; cheap when nothing is new. True when the choice changed.
  bool update();
  const SourceChoice& choice() const { return judge_.choice(); }
  // What the counter is for under this choice: pass it to Sampler::set_counter_role() whenever
  // update() says true.
  CounterRole role() const;

  // Energy in [t0, t1]. kInvalid when t1 <= t0 or the window began before what is kept; kBusy while
  // the readings that close it are not there yet (retry after the next poll, or call the sampler's
  // request_readings() and request_energy_mark()); kNotSupported when this card has no source at
  // all.
  Result<WindowEnergy> energy(Instant t0, Instant t1) const;
  // The same from one source, whatever the choice: for checks and doctor.
  Result<WindowEnergy> energy_from(EnergySource source, Instant t0, Instant t1) const;

  // Counter steps that were refused (wrap, reset, sentinel).
  std::uint64_t rejected_counter_steps() const { return ticks_.refused(); }

 private:
  Result<WindowEnergy> from_samples(Instant t0, Instant t1) const;

  const History& history_;
  EnergyMeterOptions options_;
  TickClock ticks_;
  SourceJudge judge_;      // refers to the three above
  CounterEnergy counter_;  // and to the judge
  std::size_t readings_seen_ = 0;
  std::size_t samples_seen_ = 0;
  std::optional<Instant> judged_at_;
};

}  // namespace gpoeo::telemetry
