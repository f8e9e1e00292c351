// SPDX-License-Identifier: Apache-2.0
// When to call the energy counter. A call may cost 5 ms (H200), so its calls are rationed by their
// own measured cost: at most 0.1 % of the time when the counter carries the figures, 0.02 % when it
// is only a check, plus a few calls at the start that find its ticks. A cheap counter (a twin, many
// older cards) is therefore read often and a costly one seldom, with the same code.
//
// Pure schedule: no device, no clock. The sampler asks and reports.
#pragma once

#include <optional>

#include "base/clock.h"
#include "telemetry/history.h"
#include "telemetry/tick_clock.h"

namespace gpoeo::telemetry {

enum class CounterRole { kCarriesFigures, kCheckOnly };

class EnergySchedule {
 public:
  explicit EnergySchedule(Watts max_power);

  void set_role(CounterRole role) { role_ = role; }
  void request_mark();
  bool due(Instant now) const;
  Instant next(Instant now) const;
  // After each call: what was read and how long the call took.
  void done(const CounterReading& reading);
  const TickClock& ticks() const { return ticks_; }

 private:
  CounterRole role_ = CounterRole::kCarriesFigures;
  TickClock ticks_;
};

}  // namespace gpoeo::telemetry
