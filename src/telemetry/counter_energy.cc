// SPDX-License-Identifier: Apache-2.0
#include "telemetry/counter_energy.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace gpoeo::telemetry {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Beyond the counter's last tick the samples carry on alone for so long; waiting for the next tick
// costs a tenth of a second and is exact.
constexpr Duration kExtrapolate = milliseconds(10);
// How wrong the shape of the power may be between two ticks, as a share of the distance to the
// nearer.
constexpr double kShapeError = 0.12;
constexpr Duration kAround = seconds(3);
// Longer than the sampler's longest batch.
constexpr Duration kSamplesComing = milliseconds(1500);
// Marks looked at on either side of an instant.
constexpr std::size_t kNeighbours = 16;

double seconds_of(Duration d) { return to_seconds(d).value(); }

}  // namespace

double CounterEnergy::share_before(Instant from, Instant t, Instant to, double step_j) const {
  const double linear = seconds_of(t - from) / seconds_of(to - from);
  const auto& power = history_.power;
  if (step_j <= 0 || power.empty() || power.back().time < to || power.front().time > from) {
    return linear;
  }
  if (judge_.fine()) {
    const auto all = judge_.samples_integral(from, to);
    const auto part = judge_.samples_integral(from, t);
    if (!all || !part || all->energy.value() <= 0) return linear;
    return part->energy.value() / all->energy.value();
  }
  // A coarse sample saw only a short stretch before its time stamp; what the counter has beyond
  // these stretches is spread evenly over the time that no sample saw.
  double seen_j = 0, seen_before_j = 0, seen_s = 0, seen_before_s = 0;
  const auto inside_s = [](Instant low, Instant high) {
    return std::max(0.0, seconds_of(high - low));
  };
  for (std::size_t i = power.first_after(from); i < power.size(); ++i) {
    const Instant end = power[i].time;
    const Instant begin = std::max(from, end - options_.coarse_window);
    if (begin >= to) break;
    const double power_w = power[i].power.value();
    const double all_s = inside_s(begin, std::min(end, to));
    const double before_s = inside_s(begin, std::min(end, t));
    seen_s += all_s;
    seen_j += all_s * power_w;
    seen_before_s += before_s;
    seen_before_j += before_s * power_w;
  }
  const double unseen_s = seconds_of(to - from) - seen_s;
  if (unseen_s <= 0 || seen_j >= step_j) return linear;
  const double unseen_before_s = seconds_of(t - from) - seen_before_s;
  return (seen_before_j + (step_j - seen_j) * unseen_before_s / unseen_s) / step_j;
}

// Near, and known well.
CounterEnergy::Sides CounterEnergy::sides_of(Instant t) const {
  struct Candidate {
    Tick tick;
    double cost_s;
  };
  std::optional<Candidate> before, after;
  std::size_t low = 0, high = ticks_.size();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (ticks_.tick(middle).time > t) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  const std::size_t first = low > kNeighbours ? low - kNeighbours : 0;
  const std::size_t end = std::min(ticks_.size(), low + kNeighbours);
  for (std::size_t i = first; i < end; ++i) {
    const Tick tick = ticks_.tick(i);
    if (tick.uncertainty > kVagueTick) continue;  // at the very edge of a tick: another one will do
    auto& side = tick.time <= t ? before : after;
    const double distance_s = std::abs(seconds_of(t - tick.time));
    const double cost_s = kShapeError * distance_s + seconds_of(tick.uncertainty);
    if (!side || cost_s < side->cost_s) side = Candidate{tick, cost_s};
  }
  if (before && after && before->tick.epoch != after->tick.epoch) {
    // A reset lies between; the nearer side may still be close enough.
    (before->cost_s < after->cost_s ? after : before).reset();
  }
  Sides sides;
  if (before) sides.before = before->tick;
  if (after) sides.after = after->tick;
  return sides;
}

Result<CounterEnergy::CounterAt> CounterEnergy::interpolated(const Tick& a, Instant t,
                                                             const Tick& b) const {
  const double span_s = seconds_of(b.time - a.time);
  const double step_j = (b.energy - a.energy).value();
  const double time_share = seconds_of(t - a.time) / span_s;
  const double nearer_s = std::min(seconds_of(t - a.time), seconds_of(b.time - t));
  // The samples between the ticks say where the energy went; they come a little later.
  const Instant sampled = history_.power.empty() ? Instant{} : history_.power.back().time;
  if (sampled < b.time && b.time - sampled < kSamplesComing) {
    return make_error(ErrorKind::kBusy,
                      "energy window: the power samples that close it are not here yet");
  }
  const double tick_s = std::hypot((1 - time_share) * seconds_of(a.uncertainty),
                                   time_share * seconds_of(b.uncertainty));
  // Where between the ticks the energy went is as uncertain as power is scattered around here.
  const auto around = judge_.samples_integral(t - kAround, t);
  const double scatter_w = around ? around->deviation.value() : kShapeError * step_j / span_s;
  const double error_j = std::hypot(tick_s * step_j / span_s, 0.5 * scatter_w * nearer_s);
  return CounterAt{a.energy + Joules(step_j * share_before(a.time, t, b.time, step_j)),
                   Joules(error_j), a.epoch};
}

// A little before the first tick or past the last: by the mean power of the neighbourhood.
Result<CounterEnergy::CounterAt> CounterEnergy::extrapolated(const Tick& tick, Instant t) const {
  const double away_s = seconds_of(t - tick.time);
  if (std::abs(away_s) > seconds_of(kExtrapolate)) {
    if (tick.time <= t) {
      return make_error(ErrorKind::kBusy,
                        "energy window: the counter reading that closes it is not here yet");
    }
    return make_error(ErrorKind::kInvalid,
                      "energy window: starts before the oldest reading of the energy counter kept");
  }
  const Instant from = std::min(t, tick.time);
  const Instant to = std::max(t, tick.time);
  double power_w = 0;
  if (const auto integral = judge_.samples_integral(from, to)) {
    power_w = integral->energy.value() / seconds_of(to - from);
    if (const auto& off = judge_.choice().agreement) power_w /= 1 + *off;
  } else if (ticks_.size() >= 2) {
    const Tick a = ticks_.tick(0);
    const Tick b = ticks_.tick(ticks_.size() - 1);
    if (b.time > a.time && a.epoch == b.epoch) {
      power_w = (b.energy - a.energy).value() / seconds_of(b.time - a.time);
    }
  }
  return CounterAt{
      tick.energy + Joules(power_w * away_s),
      Joules(power_w * std::hypot(seconds_of(tick.uncertainty), 2 * kShapeError * away_s)),
      tick.epoch};
}

Result<CounterEnergy::CounterAt> CounterEnergy::counter_at(Instant t) const {
  const Sides sides = sides_of(t);
  if (sides.before && sides.after) return interpolated(*sides.before, t, *sides.after);
  if (sides.before || sides.after) {
    return extrapolated(sides.before ? *sides.before : *sides.after, t);
  }
  return make_error(ErrorKind::kBusy, "energy window: the energy counter was not read yet");
}

Result<WindowEnergy> CounterEnergy::between(Instant t0, Instant t1) const {
  if (t1 <= t0)
    return make_error(ErrorKind::kInvalid, "energy window: its end is not after its start");
  GPOEO_TRY(const CounterAt start, counter_at(t0));
  GPOEO_TRY(const CounterAt end, counter_at(t1));
  if (start.epoch != end.epoch) {
    return make_error(ErrorKind::kInvalid,
                      "energy window: the energy counter was reset or wrapped inside it");
  }
  WindowEnergy window;
  window.energy = end.energy - start.energy;
  window.uncertainty = Joules(std::hypot(start.uncertainty.value(), end.uncertainty.value()));
  window.duration = to_seconds(t1 - t0);
  window.source = EnergySource::kEnergyCounter;
  const auto samples = judge_.samples_integral(t0, t1);
  window.coverage = samples ? samples->coverage : 0;
  return window;
}

}  // namespace gpoeo::telemetry
