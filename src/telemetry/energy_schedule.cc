// SPDX-License-Identifier: Apache-2.0
#include "telemetry/energy_schedule.h"

#include <algorithm>

namespace gpoeo::telemetry {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kProbesForTicks = 60;  // 10-15 ms apart: six ticks of 100 ms at least
constexpr int kChangesForTicks = 3;
constexpr int kProbesForPhase = 15;
// Prediction errors up to this need no search of the tick, a reading between two ticks will do.
constexpr Duration kSharp = milliseconds(6);
constexpr double kMarksSaved = 4;
// Even then a search now and then, so that the ticks do not drift away from the line.
constexpr int kSinglesBetweenSearches = 3;

}  // namespace

void EnergySchedule::set_role(CounterRole role) {
  if (role == role_) return;
  role_ = role;
  search_calls_left_ = 0;
  search_started_ = false;
  probes_left_ = 0;
  if (role == CounterRole::kCarriesFigures) start_probing(kProbesForTicks, kChangesForTicks);
  next_ = Instant{};  // at the next poll
}

void EnergySchedule::request_mark(Instant now) {
  if (role_ == CounterRole::kCheckOnly) return;
  // A mark is two calls: one in 400 times the cost of one is 0.5 %. The end of a window and the
  // start of the next come together, so some may be saved up.
  const double per_mark_s = to_seconds(cost_ * 400).value();
  if (!credit_time_ || per_mark_s <= 0) {
    mark_credit_ = kMarksSaved;
  } else {
    mark_credit_ =
        std::min(kMarksSaved, mark_credit_ + to_seconds(now - *credit_time_).value() / per_mark_s);
  }
  credit_time_ = now;
  if (mark_credit_ < 1) return;
  mark_credit_ -= 1;
  mark_wanted_ = true;
  if (role_ == CounterRole::kCarriesFigures && !ticks_.period()) start_probing(kProbesForPhase, 1);
  next_ = now;
}

void EnergySchedule::start_probing(int at_most, int changes) {
  if (probes_left_ > 0) return;
  probes_left_ = at_most;
  changes_wanted_ = changes;
}

Duration EnergySchedule::interval() const {
  switch (role_) {
    case CounterRole::kUndecided:
      return std::clamp<Duration>(cost_ * 500, milliseconds(50), seconds(2));
    case CounterRole::kCarriesFigures:
      return std::clamp<Duration>(cost_ * 1000, milliseconds(40), seconds(10));
    case CounterRole::kCheckOnly:
      return std::clamp<Duration>(cost_ * 5000, seconds(1), seconds(60));
  }
  return seconds(10);
}

void EnergySchedule::done(const CounterReading& reading) {
  ticks_.add(reading);
  // A slow average: one call that the system delayed must not silence the counter.
  const Duration cost = reading.time - reading.before;
  cost_ = cost_.count() == 0 ? cost : (cost_ * 7 + cost) / 8;
  const bool moved = last_energy_ && *last_energy_ != reading.energy;
  last_energy_ = reading.energy;
  if (probes_left_ > 0) {
    --probes_left_;
    if (moved && --changes_wanted_ <= 0) probes_left_ = 0;
  }
  if (search_calls_left_ > 0) {
    --search_calls_left_;
    const bool found = search_started_ && moved;
    search_started_ = true;
    if (found) {
      search_calls_left_ = 0;
      searches_missed_ = 0;
    } else if (search_calls_left_ == 0 && ++searches_missed_ >= 2) {
      searches_missed_ = 0;
      start_probing(kProbesForPhase, 1);
    }
  }
  plan(reading.time);
}

void EnergySchedule::plan(Instant now) {
  if (search_calls_left_ > 0) {
    next_ = std::max(next_ + search_step_, now + milliseconds(1));
    return;
  }
  // Polls in step with the ticks would bound each tick alike and learn nothing: 0.8 to 1.2 times
  // the interval by the golden ratio, which never repeats.
  dither_ += 0.6180339887498949;
  if (dither_ >= 1) dither_ -= 1;
  const Duration wait(
      static_cast<Duration::rep>(static_cast<double>(interval().count()) * (0.8 + 0.4 * dither_)));
  const auto period = ticks_.period();
  const bool follow_ticks = role_ == CounterRole::kCarriesFigures &&
                            interval() > (period ? *period / 2 : milliseconds(50));
  if (!follow_ticks) {
    // A check needs no tick; readings this close bound each tick by themselves.
    probes_left_ = 0;
    mark_wanted_ = false;
    next_ = now + wait;
    return;
  }
  if (probes_left_ > 0) {
    next_ = now + std::max<Duration>(milliseconds(10), cost_ + cost_ / 2);
    return;
  }
  if (!period) {
    mark_wanted_ = false;
    next_ = now + wait;
    start_probing(kProbesForPhase, 1);
    return;
  }
  const Instant aim = now + (mark_wanted_ ? milliseconds(1) : wait);
  mark_wanted_ = false;
  const Tick tick = *ticks_.next_after(aim);
  if (tick.uncertainty < kSharp && singles_since_search_ < kSinglesBetweenSearches) {
    ++singles_since_search_;
    next_ = tick.time + *period / 4;
    return;
  }
  singles_since_search_ = 0;
  plan_search(now, aim);
}

// Searches the last tick before `latest` that the line can still tell from its neighbours: right
// after the first fit that is the next one or the one after it, later any. Calls at two standard
// errors before it, at it, and as much after it halve what is not known; two calls around it would
// only confirm.
void EnergySchedule::plan_search(Instant now, Instant latest) {
  const Duration period = *ticks_.period();
  Tick tick = *ticks_.next_after(now + milliseconds(1));
  for (Duration ahead = period; now + ahead <= latest; ahead *= 2) {
    const Tick further = *ticks_.next_after(std::min(now + ahead * 2, latest));
    if (further.uncertainty * 3 > ticks_.largest_useful_error() * 2) break;
    tick = further;
  }
  search_step_ = std::clamp<Duration>(tick.uncertainty * 2, milliseconds(4), period / 3);
  search_calls_left_ = 3;
  search_started_ = false;
  // A call reads the counter somewhere in its middle.
  next_ = std::max(tick.time - search_step_ - cost_ / 2, now + milliseconds(1));
}

}  // namespace gpoeo::telemetry
