// SPDX-License-Identifier: Apache-2.0
#include "telemetry/source_judge.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/log.h"

namespace gpoeo::telemetry {
namespace {

using std::chrono::seconds;

constexpr Duration kCompareBack = seconds(60);
constexpr double kSharpEnough = 0.001;
// Usual difference of a card's power sensor and its counter, one standard deviation: 0.15 % in the
// median of 34 recordings on an H200, and some for the drift between comparisons.
constexpr double kSensorDrift = 0.003;
constexpr Duration kLongComparison = seconds(10);

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

SourceJudge::SourceJudge(const History& history, const TickClock& ticks,
                         const EnergyMeterOptions& options)
    : history_(history), ticks_(ticks), options_(options) {
  choice_.reason = "nothing was measured yet";
}

bool SourceJudge::fine() const {
  return choice_.spacing && *choice_.spacing <= options_.fine_spacing;
}

std::optional<PowerIntegral> SourceJudge::samples_integral(Instant t0, Instant t1) const {
  const auto spacing = choice_.spacing ? choice_.spacing : median_spacing(history_.power);
  if (!spacing) return std::nullopt;
  return integrate(history_.power, t0, t1, *spacing, options_.gap_factor);
}

SourceJudge::Scale SourceJudge::sample_scale() const {
  if (!choice_.final || !choice_.agreement) return {};
  if (choice_.source != EnergySource::kPowerSamples) return {1 + *choice_.agreement, 0};
  const double prior = square(kSensorDrift);
  const double blur = square(choice_.agreement_error);
  return {1 + *choice_.agreement * prior / (prior + blur),
          std::sqrt(prior * blur / (prior + blur))};
}

// Sets agreement, its error and the coverage from the newest stretch that both sources cover.
void SourceJudge::compare() {
  if (history_.power.size() < 2 || ticks_.size() < 2) return;
  std::size_t last = ticks_.size() - 1;
  while (last > 0 && (ticks_.tick(last).time > history_.power.back().time ||
                      ticks_.tick(last).uncertainty > kVagueTick)) {
    --last;
  }
  const Tick end = ticks_.tick(last);
  const Duration wanted = choice_.final ? Duration(kLongComparison) : Duration(kCompareBack);
  std::optional<Tick> begin;
  for (std::size_t i = last; i-- > 0;) {
    const Tick tick = ticks_.tick(i);
    if (tick.epoch != end.epoch || tick.time < history_.power.front().time) break;
    if (tick.uncertainty > kVagueTick) continue;
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

bool SourceJudge::choose(EnergySource source, std::string reason) {
  const bool changed = choice_.source != source || !choice_.final;
  choice_.source = source;
  choice_.final = true;
  choice_.reason = std::move(reason);
  return changed;
}

bool SourceJudge::judge() {
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

}  // namespace gpoeo::telemetry
