// SPDX-License-Identifier: Apache-2.0
#include "telemetry/energy_meter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/log.h"

namespace gpoeo::telemetry {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Beyond the counter's last tick the samples carry on alone for so long; waiting for the next tick
// costs a tenth of a second and is exact.
constexpr Duration kExtrapolate = milliseconds(10);
// No reading of the counter so long after a window's end: it will not come.
constexpr Duration kGiveUpCounter = seconds(30);
constexpr Duration kCompareBack = seconds(60);
constexpr double kSharpEnough = 0.001;
// Usual difference of a card's power sensor and its counter, one standard deviation: 0.15 % in the
// median of 34 recordings on an H200, and some for the drift between comparisons.
constexpr double kSensorDrift = 0.003;
constexpr Duration kLongComparison = seconds(10);
constexpr Duration kJudgeEach = milliseconds(500);
// A mark this vague is no end of a comparison.
constexpr Duration kVague = milliseconds(40);
// How wrong the shape of the power may be between two ticks, as a share of the distance to the
// nearer.
constexpr double kShapeError = 0.12;
constexpr Duration kAround = seconds(3);
// Longer than the sampler's longest batch.
constexpr Duration kSamplesComing = milliseconds(1500);
constexpr double kUncheckedScale = 0.05;
// Marks looked at on either side of an instant.
constexpr std::size_t kNeighbours = 16;

double seconds_of(Duration d) { return to_seconds(d).value(); }
double square(double x) { return x * x; }

}  // namespace

std::string_view to_string(EnergySource source) {
  switch (source) {
    case EnergySource::kPowerSamples:
      return "power samples";
    case EnergySource::kEnergyCounter:
      return "energy counter";
    case EnergySource::kUncheckedSamples:
      return "unchecked power samples";
  }
  return "unknown source";
}

EnergyMeter::EnergyMeter(const History& history, EnergyMeterOptions options)
    : history_(history), options_(options), ticks_(options.max_power) {
  choice_.reason = "nothing was measured yet";
}

bool EnergyMeter::update() {
  const auto& readings = history_.energy;
  const std::size_t kept_from = readings.total_pushed() - readings.size();
  const bool new_readings = readings_seen_ < readings.total_pushed();
  for (std::size_t i = std::max(readings_seen_, kept_from); i < readings.total_pushed(); ++i) {
    ticks_.add(readings[i - kept_from]);
  }
  readings_seen_ = readings.total_pushed();
  const bool new_samples = samples_seen_ < history_.power.total_pushed();
  samples_seen_ = history_.power.total_pushed();
  if (!new_readings && !new_samples) return false;

  Instant newest{};
  if (!history_.power.empty()) newest = history_.power.back().time;
  if (!readings.empty()) newest = std::max(newest, readings.back().time);
  // Once chosen, only long comparisons count, so looking each 5 s is enough.
  const Duration each = choice_.final ? Duration(seconds(5)) : Duration(kJudgeEach);
  if (judged_at_ && newest - *judged_at_ < each) return false;
  judged_at_ = newest;
  return judge();
}

CounterRole EnergyMeter::role() const {
  if (!choice_.final) return CounterRole::kUndecided;
  return choice_.source == EnergySource::kPowerSamples ? CounterRole::kCheckOnly
                                                       : CounterRole::kCarriesFigures;
}

bool EnergyMeter::fine() const {
  return choice_.spacing && *choice_.spacing <= options_.fine_spacing;
}

std::optional<PowerIntegral> EnergyMeter::samples_integral(Instant t0, Instant t1) const {
  const auto spacing = choice_.spacing ? choice_.spacing : median_spacing(history_.power);
  if (!spacing) return std::nullopt;
  return integrate(history_.power, t0, t1, *spacing, options_.gap_factor);
}

// Sets agreement, its error and the coverage from the newest stretch that both sources cover.
void EnergyMeter::compare() {
  if (history_.power.size() < 2 || ticks_.size() < 2) return;
  std::size_t last = ticks_.size() - 1;
  while (last > 0 && (ticks_.tick(last).time > history_.power.back().time ||
                      ticks_.tick(last).uncertainty > kVague)) {
    --last;
  }
  const Tick end = ticks_.tick(last);
  const Duration wanted = choice_.final ? Duration(kLongComparison) : Duration(kCompareBack);
  std::optional<Tick> begin;
  for (std::size_t i = last; i-- > 0;) {
    const Tick tick = ticks_.tick(i);
    if (tick.epoch != end.epoch || tick.time < history_.power.front().time) break;
    if (tick.uncertainty > kVague) continue;
    const Duration span = end.time - tick.time;
    if (span > kCompareBack && begin) break;
    begin = tick;
    // Long enough, and the ticks no longer blur it: what is older would only bring old drift in.
    const double blur = std::hypot(seconds_of(tick.uncertainty), seconds_of(end.uncertainty));
    if (span >= wanted && blur < kSharpEnough * seconds_of(span)) break;
  }
  if (!begin || end.time - begin->time < options_.compare_at_least) return;
  const auto samples = samples_integral(begin->time, end.time);
  if (!samples) return;
  const double counter_j = (end.energy - begin->energy).value();
  const double span_s = seconds_of(end.time - begin->time);
  choice_.compared_over = Seconds(span_s);
  choice_.coverage = samples->coverage;
  counter_stands_still_ = counter_j <= 0;
  if (counter_stands_still_) {
    choice_.agreement.reset();
    return;
  }
  choice_.agreement = samples->energy.value() / counter_j - 1;
  choice_.agreement_error = std::sqrt(square(seconds_of(begin->uncertainty) / span_s) +
                                      square(seconds_of(end.uncertainty) / span_s) +
                                      square(samples->uncertainty.value() / counter_j));
}

bool EnergyMeter::choose(EnergySource source, std::string reason) {
  const bool changed = choice_.source != source || !choice_.final;
  choice_.source = source;
  choice_.final = true;
  choice_.reason = std::move(reason);
  return changed;
}

bool EnergyMeter::judge() {
  // Once the counter was chosen nothing takes that back.
  if (choice_.final && choice_.source != EnergySource::kPowerSamples) return false;
  choice_.spacing = median_spacing(history_.power);
  compare();
  const double limit = options_.agreement_limit;
  const double off = choice_.agreement ? std::abs(*choice_.agreement) : 0.0;
  const bool long_enough = to_duration(choice_.compared_over) >= kLongComparison;

  if (choice_.final) {
    if (!choice_.agreement) return false;
    disagreements_ = long_enough && off > limit + choice_.agreement_error ? disagreements_ + 1 : 0;
    if (disagreements_ < 2) return false;
    std::string reason = fmt::format(
        "power samples came to differ from the energy counter by {:+.1f} %, over the limit of {:g} "
        "%",
        100 * *choice_.agreement, 100 * limit);
    log::warning("{}: the counter is used from now on", reason);
    return choose(EnergySource::kEnergyCounter, std::move(reason));
  }
  if (counter_stands_still_) {
    choice_.reason = "the energy counter stands still, so the power samples go unchecked";
    return false;
  }
  const bool counter_moves =
      ticks_.size() >= 2 && ticks_.tick(0).energy < ticks_.tick(ticks_.size() - 1).energy;
  // Coarse samples are no candidate, whatever a comparison would say. (There are samples for two
  // seconds or more before the second reading of the counter.)
  if (counter_moves && choice_.spacing && !fine()) {
    return choose(
        EnergySource::kEnergyCounter,
        fmt::format("power samples are {:.0f} ms apart, coarser than {:.0f} ms",
                    seconds_of(*choice_.spacing) * 1e3, seconds_of(options_.fine_spacing) * 1e3));
  }
  if (!choice_.agreement) {
    const bool counter_only =
        counter_moves && history_.power.empty() &&
        ticks_.tick(ticks_.size() - 1).time - ticks_.tick(0).time >= options_.compare_at_least;
    if (counter_only) {
      return choose(EnergySource::kEnergyCounter, "there are no power samples");
    }
    choice_.reason = history_.energy.empty()
                         ? "there is no energy counter to check the samples with"
                         : "not enough was measured yet to compare";
    return false;
  }
  if (choice_.coverage < options_.least_coverage) {
    return choose(
        EnergySource::kEnergyCounter,
        fmt::format("power samples cover only {:.0f} % of the time", 100 * choice_.coverage));
  }
  if (off + choice_.agreement_error <= limit || (long_enough && off <= limit)) {
    return choose(EnergySource::kPowerSamples,
                  fmt::format("power samples each {:.0f} ms agree with the energy counter within "
                              "{:+.2f} % over {:.1f} s",
                              seconds_of(*choice_.spacing) * 1e3, 100 * *choice_.agreement,
                              choice_.compared_over.value()));
  }
  if (off - 2 * choice_.agreement_error > limit || long_enough) {
    return choose(
        EnergySource::kEnergyCounter,
        fmt::format("power samples differ from the energy counter by {:+.1f} % over {:.1f} "
                    "s: they see only part of the time",
                    100 * *choice_.agreement, choice_.compared_over.value()));
  }
  choice_.reason = "samples and counter are not compared for long enough yet";
  return false;
}

Result<WindowEnergy> EnergyMeter::energy(Instant t0, Instant t1) const {
  if (choice_.source == EnergySource::kEnergyCounter) {
    auto result = from_counter(t0, t1);
    if (result) return result;
    const bool waits = result.error().kind == ErrorKind::kBusy;
    const bool given_up =
        !history_.power.empty() && history_.power.back().time - t1 > kGiveUpCounter;
    if (waits && !given_up) return result;
    auto samples = energy_from(EnergySource::kUncheckedSamples, t0, t1);
    return samples ? std::move(samples) : std::move(result);
  }
  auto result = energy_from(choice_.source, t0, t1);
  if (result && result->coverage >= options_.least_coverage) return result;
  if (!result && result.error().kind == ErrorKind::kBusy) return result;
  // Samples with holes: the counter, if it knows this window, knows it better.
  if (auto counter = from_counter(t0, t1); counter) {
    if (!result || counter->uncertainty < result->uncertainty) return counter;
  }
  return result;
}

EnergyMeter::Scale EnergyMeter::sample_scale() const {
  if (!choice_.final || !choice_.agreement) return {};
  if (choice_.source != EnergySource::kPowerSamples) return {1 + *choice_.agreement, 0};
  const double prior = square(kSensorDrift);
  const double blur = square(choice_.agreement_error);
  return {1 + *choice_.agreement * prior / (prior + blur),
          std::sqrt(prior * blur / (prior + blur))};
}

Result<WindowEnergy> EnergyMeter::energy_from(EnergySource source, Instant t0, Instant t1) const {
  if (source == EnergySource::kEnergyCounter) return from_counter(t0, t1);
  auto result = from_samples(t0, t1);
  if (!result) return result;
  const Scale scale = sample_scale();
  result->energy = result->energy / scale.factor;
  if (source == EnergySource::kPowerSamples) {
    result->uncertainty =
        Joules(std::hypot(result->uncertainty.value(), scale.error * result->energy.value()));
    return result;
  }
  result->source = EnergySource::kUncheckedSamples;
  result->uncertainty =
      Joules(std::hypot(result->uncertainty.value(), kUncheckedScale * result->energy.value()));
  return result;
}

Result<WindowEnergy> EnergyMeter::from_samples(Instant t0, Instant t1) const {
  if (t1 <= t0)
    return make_error(ErrorKind::kInvalid, "energy window: its end is not after its start");
  if (history_.power.empty()) {
    return make_error(history_.energy.empty() ? ErrorKind::kBusy : ErrorKind::kNotSupported,
                      "energy window: no power samples from this GPU");
  }
  if (history_.power.front().time > t0) {
    return make_error(
        ErrorKind::kInvalid,
        fmt::format("energy window: starts {:.1f} s before the oldest power sample kept",
                    seconds_of(history_.power.front().time - t0)));
  }
  const auto integral = samples_integral(t0, t1);
  if (!integral) {
    return make_error(ErrorKind::kBusy,
                      "energy window: the power samples that close it are not here yet");
  }
  return WindowEnergy{integral->energy, integral->uncertainty, to_seconds(t1 - t0),
                      EnergySource::kPowerSamples, integral->coverage};
}

double EnergyMeter::share_before(Instant from, Instant t, Instant to, double step_j) const {
  const double linear = seconds_of(t - from) / seconds_of(to - from);
  const auto& power = history_.power;
  if (step_j <= 0 || power.empty() || power.back().time < to || power.front().time > from) {
    return linear;
  }
  if (fine()) {
    const auto all = samples_integral(from, to);
    const auto part = samples_integral(from, t);
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

Result<EnergyMeter::CounterAt> EnergyMeter::counter_at(Instant t) const {
  // The best tick on either side: near, and known well.
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
    if (tick.uncertainty > kVague) continue;  // at the very edge of a tick: another one will do
    auto& side = tick.time <= t ? before : after;
    const double distance_s = std::abs(seconds_of(t - tick.time));
    const double cost_s = kShapeError * distance_s + seconds_of(tick.uncertainty);
    if (!side || cost_s < side->cost_s) side = Candidate{tick, cost_s};
  }
  if (before && after && before->tick.epoch != after->tick.epoch) {
    // A reset lies between; the nearer side may still be close enough.
    (before->cost_s < after->cost_s ? after : before).reset();
  }
  if (before && after) {
    const Tick& a = before->tick;
    const Tick& b = after->tick;
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
    const auto around = samples_integral(t - kAround, t);
    const double scatter_w = around ? around->deviation.value() : kShapeError * step_j / span_s;
    const double error_j = std::hypot(tick_s * step_j / span_s, 0.5 * scatter_w * nearer_s);
    return CounterAt{a.energy + Joules(step_j * share_before(a.time, t, b.time, step_j)),
                     Joules(error_j), a.epoch};
  }
  const auto& side = before ? before : after;
  if (!side)
    return make_error(ErrorKind::kBusy, "energy window: the energy counter was not read yet");
  const double away_s = seconds_of(t - side->tick.time);
  if (std::abs(away_s) > seconds_of(kExtrapolate)) {
    if (before) {
      return make_error(ErrorKind::kBusy,
                        "energy window: the counter reading that closes it is not here yet");
    }
    return make_error(ErrorKind::kInvalid,
                      "energy window: starts before the oldest reading of the energy counter kept");
  }
  // A little past the last tick: by the mean power of the neighbourhood.
  const Instant from = std::min(t, side->tick.time);
  const Instant to = std::max(t, side->tick.time);
  double power_w = 0;
  if (const auto integral = samples_integral(from, to)) {
    power_w = integral->energy.value() / seconds_of(to - from);
    if (choice_.agreement) power_w /= 1 + *choice_.agreement;
  } else if (ticks_.size() >= 2) {
    const Tick a = ticks_.tick(0);
    const Tick b = ticks_.tick(ticks_.size() - 1);
    if (b.time > a.time && a.epoch == b.epoch) {
      power_w = (b.energy - a.energy).value() / seconds_of(b.time - a.time);
    }
  }
  return CounterAt{
      side->tick.energy + Joules(power_w * away_s),
      Joules(power_w * std::hypot(seconds_of(side->tick.uncertainty), 2 * kShapeError * away_s)),
      side->tick.epoch};
}

Result<WindowEnergy> EnergyMeter::from_counter(Instant t0, Instant t1) const {
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
  const auto samples = samples_integral(t0, t1);
  window.coverage = samples ? samples->coverage : 0;
  return window;
}

}  // namespace gpoeo::telemetry
