// SPDX-License-Identifier: Apache-2.0
#include "telemetry/energy_schedule.h"

#include <algorithm>

namespace gpoeo::telemetry {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kProbesForTicks = 60;  // 10 ms apart: six ticks of 100 ms
constexpr int kProbesForMark = 12;
constexpr int kPairEvery = 4;
// Prediction errors up to this need no pair around the tick, a reading in its middle will do.
constexpr Duration kSharp = milliseconds(8);

}  // namespace

void EnergySchedule::set_role(CounterRole role) {
  if (role == role_) return;
  role_ = role;
  second_of_pair_.reset();
  probes_left_ = role == CounterRole::kCarriesFigures && !ticks_.period() ? kProbesForTicks : 0;
  next_ = Instant{};  // at the next poll
}

void EnergySchedule::request_mark(Instant now) {
  if (role_ == CounterRole::kCheckOnly || now < next_mark_) return;
  mark_wanted_ = true;
  next_mark_ = now + cost_ * 400;  // two calls each
  if (role_ == CounterRole::kCarriesFigures && !ticks_.period()) {
    probes_left_ = std::max(probes_left_, kProbesForMark);
  }
  next_ = now;
}

Duration EnergySchedule::interval() const {
  switch (role_) {
    case CounterRole::kUndecided:
      return std::clamp<Duration>(cost_ * 500, milliseconds(50), seconds(2));
    case CounterRole::kCarriesFigures:
      return std::clamp<Duration>(cost_ * 1000, milliseconds(50), seconds(10));
    case CounterRole::kCheckOnly:
      return std::clamp<Duration>(cost_ * 5000, seconds(1), seconds(60));
  }
  return seconds(10);
}

Duration EnergySchedule::probe_gap() const {
  return std::max<Duration>(milliseconds(10), cost_ + cost_ / 2);
}

void EnergySchedule::done(const CounterReading& reading) {
  ticks_.add(reading);
  // A slow average: one call that the system delayed must not silence the counter.
  const Duration cost = reading.time - reading.before;
  cost_ = cost_.count() == 0 ? cost : (cost_ * 7 + cost) / 8;
  if (probes_left_ > 0) --probes_left_;
  plan(reading.time);
}

void EnergySchedule::plan(Instant now) {
  const auto period = ticks_.period();
  if (second_of_pair_) {
    next_ = std::max(*second_of_pair_, now + milliseconds(1));
    second_of_pair_.reset();
    return;
  }
  if (probes_left_ > 0 && !period) {
    next_ = now + probe_gap();
    return;
  }
  const Duration wait = interval();
  if (role_ == CounterRole::kCheckOnly || !period || wait <= *period) {
    // Readings this close bound each tick by themselves; a check needs no tick.
    mark_wanted_ = false;
    next_ = now + wait;
    return;
  }
  // Right after the first fit the period is known to some per cent only, so pairs go ahead in
  // doubling steps until the interval is reached.
  reach_ = reach_.count() == 0 ? *period : std::min(reach_ * 2, wait);
  Instant aim = now + (mark_wanted_ ? milliseconds(1) : reach_);
  auto tick = ticks_.next_after(aim);
  const bool sharp = tick->uncertainty < kSharp;
  const bool climbing = reach_ < wait;
  if (!climbing && sharp && (mark_wanted_ || ++since_pair_ < kPairEvery)) {
    next_ = tick->time + *period / 4;
  } else {
    const Duration margin = std::min<Duration>(
        std::max<Duration>(tick->uncertainty * 2, milliseconds(6)) + cost_, *period / 3);
    next_ = std::max(tick->time - margin, now + milliseconds(1));
    second_of_pair_ = tick->time + margin;
    since_pair_ = 0;
  }
  mark_wanted_ = false;
}

}  // namespace gpoeo::telemetry
