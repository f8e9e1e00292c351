// SPDX-License-Identifier: Apache-2.0
#include "iteration/spectral_scale.h"

#include <algorithm>
#include <cmath>

#include "iteration/spectrum.h"

namespace gpoeo::iteration {
namespace {

// Steps of the logarithmic frequency axis, and how far apart in it two ratios are clearly
// different.
constexpr double kLogStep = 1e-3;
constexpr double kClearlyDifferent = 0.04;
// Surroundings of a line, on each side, in the logarithm of frequency.
constexpr double kSurroundings = 0.25;
// Fewer turns than this in a window make no line.
constexpr double kLeastTurns = 3;
constexpr double kPadding = 4;
// Of the Nyquist frequency: above, the sensor's own sampling shows.
constexpr double kUsableBand = 0.95;
// A peak stands this far above the median of its surroundings (in amplitude).
constexpr double kStandsOut = 3;
constexpr double kComparable = 0.25;

// The spectrum on a logarithmic axis from `least_hz`, surroundings taken off, never negative.
std::vector<double> log_spectrum(const Spectrum& spectrum, double least_hz, std::size_t bins) {
  std::vector<double> amplitude(bins);
  for (std::size_t i = 0; i < bins; ++i) {
    const double hz = least_hz * std::exp(kLogStep * static_cast<double>(i));
    amplitude[i] = std::sqrt(interpolate(spectrum.amplitude, spectrum.step_hz, hz));
  }
  std::vector<double> sum(bins + 1, 0.0);
  for (std::size_t i = 0; i < bins; ++i) sum[i + 1] = sum[i] + amplitude[i];
  const auto reach = static_cast<std::size_t>(kSurroundings / kLogStep);
  std::vector<double> result(bins);
  for (std::size_t i = 0; i < bins; ++i) {
    const std::size_t from = i > reach ? i - reach : 0, to = std::min(bins, i + reach + 1);
    const double around = (sum[to] - sum[from]) / static_cast<double>(to - from);
    result[i] = std::max(0.0, amplitude[i] - 1.2 * around);
  }
  return result;
}

double correlation_at(const std::vector<double>& a, const std::vector<double>& b, int shift) {
  double ab = 0, aa = 0, bb = 0;
  const int n = static_cast<int>(a.size());
  const int from = std::max(0, shift), to = std::min(n, n + shift);
  for (int i = from; i < to; ++i) {
    const double x = a[static_cast<std::size_t>(i)], y = b[static_cast<std::size_t>(i - shift)];
    ab += x * y;
    aa += x * x;
    bb += y * y;
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

}  // namespace

std::optional<SpectralScale> spectral_scale(const Series& a, const Series& b, double least_ratio,
                                            double most_ratio) {
  const double least_hz = kLeastTurns / std::min(a.duration_s(), b.duration_s());
  const double most_hz = kUsableBand * 0.5 / std::max(a.step_s, b.step_s);
  if (most_hz < 2 * least_hz) return std::nullopt;
  const auto bins = static_cast<std::size_t>(std::log(most_hz / least_hz) / kLogStep);
  const auto x = log_spectrum(amplitude_spectrum(a.value, a.step_s, kPadding), least_hz, bins);
  const auto y = log_spectrum(amplitude_spectrum(b.value, b.step_s, kPadding), least_hz, bins);
  // A line at f in A lies at f / ratio in B, `shift` bins lower.
  const int least = static_cast<int>(std::floor(std::log(least_ratio) / kLogStep));
  const int most = static_cast<int>(std::ceil(std::log(most_ratio) / kLogStep));
  std::vector<double> correlation;
  for (int shift = least; shift <= most; ++shift) {
    correlation.push_back(correlation_at(x, y, shift));
  }
  const auto best = std::ranges::max_element(correlation);
  const auto at = static_cast<int>(best - correlation.begin());
  SpectralScale scale;
  scale.ratio = std::exp(kLogStep * (least + at));
  scale.correlation = *best;
  const int apart = static_cast<int>(kClearlyDifferent / kLogStep);
  for (int i = 0; i < static_cast<int>(correlation.size()); ++i) {
    if (std::abs(i - at) >= apart) {
      scale.runner_up = std::max(scale.runner_up, correlation[static_cast<std::size_t>(i)]);
    }
  }
  return scale;
}

std::vector<SpectralPeak> spectral_peaks(const Series& series, std::size_t most) {
  const Spectrum spectrum = amplitude_spectrum(series.value, series.step_s, kPadding);
  const auto& amplitude = spectrum.amplitude;
  double variance = 0;
  for (const double v : series.value) variance += v * v;
  variance /= static_cast<double>(series.value.size());
  const double floor = quantile(amplitude, 0.5);
  std::vector<SpectralPeak> peaks;
  const auto first = static_cast<std::size_t>(kLeastTurns / series.duration_s() / spectrum.step_hz);
  for (std::size_t i = std::max<std::size_t>(first, 1); i + 1 < amplitude.size(); ++i) {
    const double here = amplitude[i];
    if (here < amplitude[i - 1] || here <= amplitude[i + 1] || here < kStandsOut * floor) continue;
    peaks.push_back({static_cast<double>(i) * spectrum.step_hz, here * here / 2 / variance, 0});
  }
  std::ranges::sort(peaks, std::ranges::greater{}, &SpectralPeak::power);
  for (SpectralPeak& peak : peaks) {
    peak.gap_hz = peak.hz;
    for (const SpectralPeak& other : peaks) {
      const double gap = std::abs(other.hz - peak.hz);
      if (gap > 0 && other.power > kComparable * peak.power && gap > 3 / series.duration_s()) {
        peak.gap_hz = std::min(peak.gap_hz, gap);
      }
    }
  }
  if (peaks.size() > most) peaks.resize(most);
  return peaks;
}

}  // namespace gpoeo::iteration
