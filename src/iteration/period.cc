// SPDX-License-Identifier: Apache-2.0
#include "iteration/period.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "iteration/comb.h"
#include "iteration/phase_track.h"
#include "iteration/spectrum.h"

namespace gpoeo::iteration {
namespace {

// Lags up to this share of the series are looked at: beyond, too little of it overlaps.
constexpr double kLagShare = 0.45;
// A shorter period is preferred to a stronger longer one down to this share of its strength: all
// multiples of a period repeat as well as it does.
constexpr double kNearlyAsStrong = 0.75;
// Combs whose periods differ by less are the same rhythm.
constexpr double kSameRhythm = 0.1;
// Least confidence with which a period is given.
constexpr double kLeastConfidence = 0.5;
// The comb and the phase track must agree to this share, or only the comb is believed.
constexpr double kAgreement = 0.03;
// A period of which so much energy is in the harmonics that a whole number divides is a multiple.
constexpr double kEmptied = 0.92;
constexpr double kSpectrumPadding = 2;
// A line is looked for within this many resolution steps (1 / duration) of its place.
constexpr double kLineReach = 2;
// Band around a harmonic, as a share of the fundamental: neighbours are 5 deviations away.
constexpr double kBandShare = 0.2;
constexpr int kMostHarmonic = 4;
// Micro-steps in a step that are told apart, and by how much better whole steps must repeat.
constexpr int kMostFactor = 32;
constexpr double kNestingGain = 0.03;
constexpr double kNestingSigmas = 4;
constexpr int kLeastSteps = 4;

// Confidence of a comb: a logistic curve in its strength, fitted on windows of the recordings and
// on synthetic traces (bench/iteration_bench, docs/iterations.md).
constexpr double kEvenStrength = 0.31;
constexpr double kStrengthWidth = 0.035;
// Strength that combs reach by chance, times the root of the number of samples.
constexpr double kChance = 1.2;
// Power that swings less than this share of its mean is as likely the sensor's own doing.
constexpr double kLeastSwing = 0.01;

struct Chosen {
  Comb comb;
  bool unresolved = false;  // something shorter than the sampling resolves is about as strong
};

std::optional<Chosen> choose(const std::vector<Comb>& combs, double step_s) {
  const double least = kLeastSamplesPerPeriod * step_s;
  double best = 0, best_short = 0;
  for (const Comb& c : combs) {
    if (c.period_s < least) {
      best_short = std::max(best_short, c.strength);
    } else if (c.multiples > 1) {
      best = std::max(best, c.strength);
    }
  }
  const Comb* shortest = nullptr;
  for (const Comb& c : combs) {
    if (c.period_s < least || c.multiples < 2 || c.strength < kNearlyAsStrong * best) continue;
    if (shortest == nullptr || c.period_s < shortest->period_s) shortest = &c;
  }
  if (shortest == nullptr) {
    if (best_short == 0) return std::nullopt;
    return Chosen{{}, true};
  }
  // Peaks beside the true one, within a multiple of a faster rhythm, are nearly as high.
  const Comb* strongest = shortest;
  for (const Comb& c : combs) {
    const bool same = std::abs(c.period_s / shortest->period_s - 1) < kSameRhythm;
    if (same && c.strength > strongest->strength) strongest = &c;
  }
  return Chosen{*strongest, best_short >= kNearlyAsStrong * strongest->strength};
}

// A multiple of the true period can win by chance when the true one falls between samples. Its odd
// harmonics (or those that 3, 5 do not divide) are then empty.
double divide_out(const Series& series, double period_s) {
  const Spectrum spectrum = amplitude_spectrum(series.value, series.step_s, kSpectrumPadding);
  const auto energy_at = [&](double hz) {
    const double reach = std::min(kLineReach / series.duration_s(), 0.2 / period_s);
    double highest = 0;
    for (auto i = static_cast<std::size_t>((hz - reach) / spectrum.step_hz);
         i < spectrum.amplitude.size() && static_cast<double>(i) * spectrum.step_hz <= hz + reach;
         ++i) {
      highest = std::max(highest, spectrum.amplitude[i]);
    }
    return highest * highest;
  };
  std::vector<double> harmonics;
  for (double hz = 1 / period_s; hz < 0.5 / series.step_s; hz += 1 / period_s) {
    harmonics.push_back(energy_at(hz));
  }
  for (const std::size_t divisor : {2, 3, 5}) {
    double all = 0, divisible = 0;
    for (std::size_t h = 1; h <= harmonics.size(); ++h) {
      all += harmonics[h - 1];
      if (h % divisor == 0) divisible += harmonics[h - 1];
    }
    if (divisible > kEmptied * all)
      return divide_out(series, period_s / static_cast<double>(divisor));
  }
  return period_s;
}

struct Refined {
  double period_s = 0;
  double steadiness = 0;
};

// Counts turns of the steadiest harmonic; the comb's own period when none agrees with it.
Refined refine(const Series& series, const Comb& comb) {
  Refined best{comb.period_s, 0};
  const double hz = 1 / comb.period_s;
  for (int h = 1; h <= kMostHarmonic && h * hz < 0.45 / series.step_s; ++h) {
    const auto line = track_line(series, h * hz, kBandShare * hz);
    if (!line || line->steadiness <= best.steadiness) continue;
    const double period = h / line->hz;
    if (std::abs(period / comb.period_s - 1) > kAgreement) continue;
    best = {period, line->steadiness};
  }
  return best;
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

double confidence_of(const Series& series, const Comb& comb, const Refined& refined) {
  const double chance = kChance / std::sqrt(static_cast<double>(series.value.size()));
  const double by_strength = logistic((comb.strength - kEvenStrength - chance) / kStrengthWidth);
  // Two or three repeats of a long cycle may be chance, whatever they look like.
  const double repeats = series.duration_s() / comb.period_s;
  const double by_repeats = 1 - std::exp(-(repeats - 1) / 2);
  double variance = 0;
  for (const double v : series.value) variance += v * v;
  variance /= static_cast<double>(series.value.size());
  const double swing = std::sqrt(variance * comb.strength) / std::max(1e-9, series.mean_w);
  const double by_swing = swing * swing / (swing * swing + kLeastSwing * kLeastSwing);
  const double by_agreement = refined.steadiness > 0 ? 1.0 : 0.6;
  return by_strength * by_repeats * by_swing * by_agreement;
}

// The step that the chosen period is a micro-step of, if whole steps repeat better.
std::optional<PeriodLevel> find_step(std::span<const double> r, const Series& series,
                                     const PeriodLevel& micro) {
  double best_gain = 0;
  std::optional<PeriodLevel> step;
  for (int factor = 2; factor <= kMostFactor; ++factor) {
    const double period = micro.period_s * factor;
    const Nesting n = nesting(r, series.step_s, micro.period_s, factor);
    if (n.steps < kLeastSteps) break;
    const double gain = n.at_step - n.between;
    const double chance = kNestingSigmas * n.spread / std::sqrt(n.steps);
    if (gain <= std::max({best_gain, chance, kNestingGain})) continue;
    best_gain = gain;
    step = PeriodLevel{period, series.duration_s() / period, std::clamp(n.at_step, 0.0, 1.0)};
  }
  return step;
}

PeriodEstimate without(std::string reason) {
  PeriodEstimate estimate;
  estimate.reason = std::move(reason);
  return estimate;
}

}  // namespace

PeriodEstimate estimate_period(const Series& series) {
  const auto r = autocorrelation(
      series.value, static_cast<std::size_t>(kLagShare * static_cast<double>(series.value.size())));
  const auto combs = find_combs(r, series.step_s);
  auto chosen = choose(combs, series.step_s);
  if (!chosen) return without("aperiodic: nothing in the trace repeats");
  const std::string shortest =
      fmt::format("{:.0f} ms", 1e3 * kLeastSamplesPerPeriod * series.step_s);
  const std::string cannot_resolve =
      fmt::format("cannot resolve at this sampling: the rhythm is shorter than {} ({} samples)",
                  shortest, kLeastSamplesPerPeriod);
  if (chosen->comb.period_s == 0) return without(cannot_resolve);

  chosen->comb.period_s = divide_out(series, chosen->comb.period_s);
  if (chosen->comb.period_s < kLeastSamplesPerPeriod * series.step_s) chosen->unresolved = true;
  const Refined refined = refine(series, chosen->comb);
  PeriodEstimate estimate;
  estimate.confidence = confidence_of(series, chosen->comb, refined);
  if (chosen->unresolved) {
    estimate.confidence = std::min(estimate.confidence, kLeastConfidence / 2);
    estimate.reason = cannot_resolve;
    return estimate;
  }
  if (estimate.confidence < kLeastConfidence) {
    estimate.reason = fmt::format(
        "aperiodic, or shorter than {}: the best guess, {:.4g} s, repeats "
        "too weakly",
        shortest, refined.period_s);
    return estimate;
  }
  estimate.period_s = refined.period_s;
  estimate.levels.push_back(
      {refined.period_s, series.duration_s() / refined.period_s, chosen->comb.strength});
  if (const auto step = find_step(r, series, estimate.levels.front())) {
    estimate.levels.push_back(*step);
  }
  return estimate;
}

PeriodEstimate estimate_period(const PowerTrace& trace) {
  const auto series = make_series(trace);
  if (!series) return without(series.error().text);
  return estimate_period(*series);
}

PeriodStream::PeriodStream(double window_s) : window_s_(window_s) {
  estimate_.reason = "no samples yet";
}

void PeriodStream::push(double t_s, double power_w) {
  if (!std::isfinite(t_s) || !std::isfinite(power_w)) return;
  if (!t_s_.empty() && t_s <= t_s_.back()) return;
  t_s_.push_back(t_s);
  power_w_.push_back(power_w);
  while (t_s_.back() - t_s_.front() > window_s_ || t_s_.size() > kMostSamples) {
    t_s_.pop_front();
    power_w_.pop_front();
  }
  if (++since_estimate_ < std::max(kLeastSamples / 2, t_s_.size() / 8)) return;
  since_estimate_ = 0;
  estimate_ =
      estimate_period(PowerTrace{{t_s_.begin(), t_s_.end()}, {power_w_.begin(), power_w_.end()}});
}

void PeriodStream::reset() { *this = PeriodStream(window_s_); }

}  // namespace gpoeo::iteration
