// SPDX-License-Identifier: Apache-2.0
// When to call the energy counter. A call costs 4-7 ms of CPU on an H200, so calls are rationed by
// their own measured cost: at most 0.1 % of the time when the counter carries the figures, 0.02 %
// when it is only a check, plus some calls at the start that find its ticks. A cheap counter (a
// twin) is therefore read often and a costly one seldom, by the same code.
//
// Pure schedule: no device, no clock. The sampler asks and reports.
#pragma once

#include <optional>

#include "base/clock.h"
#include "telemetry/history.h"
#include "telemetry/tick_clock.h"

namespace gpoeo::telemetry {

enum class CounterRole {
  kUndecided,       // a few readings, to compare the power samples with
  kCarriesFigures,  // the samples are no good: find the ticks, then follow them
  kCheckOnly,
};

class EnergySchedule {
 public:
  explicit EnergySchedule(Watts max_power) : ticks_(max_power) {}

  void set_role(CounterRole role);
  // A reading now and one after the next tick: an edge of a window lies between them. Requests that
  // would spend more than 0.5 % of the time are dropped; the window is then a little less sharp.
  void request_mark(Instant now);
  // When the next call is wanted.
  Instant next() const { return next_; }
  // After each call: what it said. Its cost is reading.time - reading.before.
  void done(const CounterReading& reading);
  // After a call that failed.
  void failed(Instant retry_at) { next_ = retry_at; }

 private:
  Duration interval() const;
  void start_probing(int at_most, int changes);
  void plan(Instant now);
  void plan_search(Instant now, Instant latest);

  CounterRole role_ = CounterRole::kUndecided;
  TickClock ticks_;
  Instant next_{};
  Duration cost_{};
  std::optional<Joules> last_energy_;
  bool mark_wanted_ = false;
  double mark_credit_ = 0;  // marks that may be spent
  std::optional<Instant> credit_time_;
  // Probing: calls in a row until the counter was seen to move so many times.
  int probes_left_ = 0;
  int changes_wanted_ = 0;
  // A search of a predicted tick: calls before, at and after it, until the counter moves.
  int search_calls_left_ = 0;
  bool search_started_ = false;  // its first call was made
  Duration search_step_{};
  int searches_missed_ = 0;
  int singles_since_search_ = 0;
  double dither_ = 0;
};

}  // namespace gpoeo::telemetry
