// SPDX-License-Identifier: Apache-2.0
#include "iteration/slowdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "iteration/comb.h"
#include "iteration/period.h"
#include "iteration/phase_track.h"
#include "iteration/spectral_scale.h"
#include "iteration/spectrum.h"

namespace gpoeo::iteration {
namespace {

constexpr std::size_t kMostLines = 12;
// Band around a line: a share of its frequency, but clear of its neighbours, and wide enough for
// the window (track_line needs 6 time constants).
constexpr double kBandOfLine = 0.12;
constexpr double kBandOfGap = 0.3;
constexpr double kBandOfWindow = 1.2;
// A line counts when it is so steady in both windows.
constexpr double kLeastSteadiness = 0.45;
// and its own ratio is within this of the spectra's.
constexpr double kNearScale = 0.03;
// One standard deviation that remains however good the lines are, as a time over the length of the
// window: iterations end a little before or after the power tells so. Calibrated on halves of the
// recordings (bench/iteration_bench).
constexpr double kEndUncertainty_s = 0.02;
constexpr double k90 = 1.645;
// Refused: a standard deviation above this, spectra that fit less, or fit as well elsewhere.
constexpr double kMostSigma = 0.012;
constexpr double kLeastCorrelation = 0.35;
constexpr double kLeastRhythm = 0.3;
constexpr double kChance = 2.5;  // over the root of the number of samples
constexpr double kLagShare = 0.45;
constexpr double kSingleRepeat = 0.7;
// Lines weaker than this share of the strongest have no vote; those in bands this much wider than
// the least have the first.
constexpr double kLeastPower = 0.02;
constexpr double kLeastCrowdedPower = 0.1;
constexpr double kWideBand = 2;

struct LineRatio {
  double log_ratio = 0;
  double variance = 0;
  bool stands_alone = false;  // its band holds several independent samples of the phase
  bool resolved = false;      // slow enough not to be taken for the alias of a faster rhythm
};

std::optional<LineRatio> compare_line(const Series& a, const Series& b, const SpectralPeak& peak,
                                      double ratio) {
  const double least_width = kBandOfWindow / std::min(a.duration_s(), b.duration_s());
  const double width =
      std::max(std::min(kBandOfLine * peak.hz, kBandOfGap * peak.gap_hz), least_width);
  const auto in_a = track_line(a, peak.hz, width);
  const auto in_b = track_line(b, peak.hz / ratio, width / ratio);
  if (!in_a || !in_b || in_a->hz <= 0 || in_b->hz <= 0) return std::nullopt;
  if (std::min(in_a->steadiness, in_b->steadiness) < kLeastSteadiness) return std::nullopt;
  const double log_ratio = std::log(in_a->hz / in_b->hz);
  if (std::abs(log_ratio - std::log(ratio)) > kNearScale) return std::nullopt;
  const double sa = in_a->sigma_hz / in_a->hz, sb = in_b->sigma_hz / in_b->hz;
  const double period_s = 1 / std::max(in_a->hz, in_b->hz);
  return LineRatio{log_ratio, sa * sa + sb * sb, width >= kWideBand * least_width,
                   period_s >= kLeastSamplesPerPeriod * std::max(a.step_s, b.step_s)};
}

// The lines worth a vote. In a band as narrow as the window allows anything looks steady, so such
// lines vote only when no other is there.
std::vector<LineRatio> compare_lines(const Series& a, const Series& b, double ratio) {
  const auto peaks = spectral_peaks(a, kMostLines);
  std::vector<LineRatio> lines;
  for (const SpectralPeak& peak : peaks) {
    const auto line = compare_line(a, b, peak, ratio);
    if (!line) continue;
    const double least = line->stands_alone ? kLeastPower : kLeastCrowdedPower;
    if (peak.power >= least * peaks.front().power) lines.push_back(*line);
  }
  if (std::ranges::any_of(lines, &LineRatio::stands_alone)) {
    std::erase_if(lines, [](const LineRatio& l) { return !l.stands_alone; });
  }
  return lines;
}

// How strongly a window repeats with any period at all. With a single repeat to compare, the best
// of many periods is strong by chance.
double rhythm(const Series& series) {
  const auto r = autocorrelation(
      series.value, static_cast<std::size_t>(kLagShare * static_cast<double>(series.value.size())));
  double strongest = 0;
  for (const Comb& comb : find_combs(r, series.step_s)) {
    strongest = std::max(strongest, comb.strength * (comb.multiples > 1 ? 1.0 : kSingleRepeat));
  }
  return strongest;
}

struct Combined {
  double log_ratio = 0;
  double sigma = 0;
};

// Weighted mean; its deviation by the lines' own and by how far they disagree, whichever is more.
Combined combine(const std::vector<LineRatio>& lines, double floor) {
  double weights = 0, sum = 0;
  for (const LineRatio& l : lines) {
    const double w = 1 / (l.variance + floor * floor);
    weights += w;
    sum += w * l.log_ratio;
  }
  Combined c;
  c.log_ratio = sum / weights;
  double chi = 0;
  for (const LineRatio& l : lines) {
    const double off = l.log_ratio - c.log_ratio;
    chi += off * off / (l.variance + floor * floor);
  }
  const double disagreement =
      lines.size() > 1 ? std::max(1.0, chi / static_cast<double>(lines.size() - 1)) : 1.0;
  // Lines are harmonics of one rhythm and err together, so more of them do not make it finer.
  double least = lines.front().variance;
  for (const LineRatio& l : lines) least = std::min(least, l.variance);
  c.sigma = std::sqrt(disagreement * (least + floor * floor));
  return c;
}

SlowdownEstimate without(std::string reason) {
  SlowdownEstimate estimate;
  estimate.reason = std::move(reason);
  return estimate;
}

}  // namespace

SlowdownEstimate compare_traces(const PowerTrace& a, const PowerTrace& b) {
  const auto x = make_series(a), y = make_series(b);
  if (!x) return without("first trace: " + x.error().text);
  if (!y) return without("second trace: " + y.error().text);
  const auto scale = spectral_scale(*x, *y, kLeastRatio, kMostRatio);
  if (!scale) return without("the traces are too short to compare");
  if (scale->correlation < kLeastCorrelation) {
    return without(fmt::format("the two spectra do not fit each other (correlation {:.2f})",
                               scale->correlation));
  }
  const double weakest = std::min(rhythm(*x), rhythm(*y));
  const double chance =
      kChance / std::sqrt(static_cast<double>(std::min(x->value.size(), y->value.size())));
  if (weakest < kLeastRhythm + chance) {
    return without(fmt::format("no clear rhythm (strength {:.2f})", weakest));
  }
  const auto lines = compare_lines(*x, *y, scale->ratio);
  if (lines.empty()) return without("no rhythm is steady in both traces");
  if (std::ranges::none_of(lines, &LineRatio::resolved)) {
    return without(
        fmt::format("cannot resolve at this sampling: the rhythm is shorter than {} samples",
                    kLeastSamplesPerPeriod));
  }
  const Combined combined =
      combine(lines, kEndUncertainty_s / std::min(x->duration_s(), y->duration_s()));
  if (combined.sigma > kMostSigma) {
    return without(
        fmt::format("the rhythm wanders too much (+-{:.1f} %)", 100 * k90 * combined.sigma));
  }
  SlowdownEstimate estimate;
  estimate.time_ratio = std::exp(combined.log_ratio);
  estimate.low = std::exp(combined.log_ratio - k90 * combined.sigma);
  estimate.high = std::exp(combined.log_ratio + k90 * combined.sigma);
  estimate.confidence =
      std::clamp(scale->correlation * (1 - combined.sigma / (2 * kMostSigma)), 0.0, 1.0);
  return estimate;
}

SlowdownEstimate compare_iteration_ends(std::span<const std::int64_t> a_end_ns,
                                        std::span<const std::int64_t> b_end_ns) {
  struct Mean {
    double time = 0, relative_sigma = 0;
  };
  const auto mean_of = [](std::span<const std::int64_t> ends) {
    const double n = static_cast<double>(ends.size() - 1);
    Mean mean;
    mean.time = static_cast<double>(ends.back() - ends.front()) / n;
    double squares = 0;
    for (std::size_t i = 1; i < ends.size(); ++i) {
      const double off = static_cast<double>(ends[i] - ends[i - 1]) - mean.time;
      squares += off * off;
    }
    mean.relative_sigma = std::sqrt(squares / (n - 1) / n) / mean.time;
    return mean;
  };
  if (a_end_ns.size() < 3 || b_end_ns.size() < 3) {
    return without("fewer than 3 iteration ends in a window");
  }
  if (a_end_ns.back() <= a_end_ns.front() || b_end_ns.back() <= b_end_ns.front()) {
    return without("iteration ends do not rise");
  }
  const Mean a = mean_of(a_end_ns), b = mean_of(b_end_ns);
  const double sigma = std::hypot(a.relative_sigma, b.relative_sigma);
  SlowdownEstimate estimate;
  estimate.time_ratio = b.time / a.time;
  estimate.low = *estimate.time_ratio * std::exp(-k90 * sigma);
  estimate.high = *estimate.time_ratio * std::exp(k90 * sigma);
  estimate.confidence = 1;
  return estimate;
}

}  // namespace gpoeo::iteration
