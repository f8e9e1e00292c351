// SPDX-License-Identifier: Apache-2.0
#include "iteration/phase_track.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "iteration/spectrum.h"

namespace gpoeo::iteration {
namespace {

using std::numbers::pi;

// Parts of the window, at each end, over which the phase is averaged. Small parts follow a rhythm
// that wanders, large ones average noise; between 1/12 and 1/4 the results hardly differ.
constexpr double kEndPart = 1.0 / 8;

std::vector<double> unwrapped_phase(std::span<const std::complex<double>> signal) {
  std::vector<double> phase(signal.size());
  for (std::size_t i = 0; i < signal.size(); ++i) {
    const double raw = std::arg(signal[i]);
    phase[i] = i == 0 ? raw : phase[i - 1] + std::remainder(raw - phase[i - 1], 2 * pi);
  }
  return phase;
}

struct Mean {
  double phase = 0, at = 0;
};

Mean mean_phase(std::span<const std::complex<double>> signal, std::span<const double> phase,
                std::size_t begin, std::size_t end) {
  Mean mean;
  double weight = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const double w = std::norm(signal[i]);
    weight += w;
    mean.phase += w * phase[i];
    mean.at += w * static_cast<double>(i);
  }
  if (weight > 0) {
    mean.phase /= weight;
    mean.at /= weight;
  }
  return mean;
}

}  // namespace

std::optional<Line> track_line(const Series& series, double hz, double width_hz) {
  const std::size_t n = series.value.size();
  const double constant = 1 / (2 * pi * width_hz) / series.step_s;  // of the band, in samples
  if (static_cast<double>(n) < 6 * constant || n < 8) return std::nullopt;
  const auto signal = demodulate(series.value, series.step_s, hz, width_hz);
  const auto phase = unwrapped_phase(signal);
  // The edge fades over one time constant; its amplitude weights make the rest of it harmless.
  const auto edge = static_cast<std::size_t>(constant / 2);
  const auto part = std::max<std::size_t>(
      2, static_cast<std::size_t>(kEndPart * static_cast<double>(n - 2 * edge)));
  const Mean first = mean_phase(signal, phase, edge, edge + part);
  const Mean last = mean_phase(signal, phase, n - edge - part, n - edge);
  const double slope = (last.phase - first.phase) / (last.at - first.at);  // a sample

  // Scatter of the phase around the straight line, and the part of the energy that is in step
  // with it. Samples within about two time constants of each other tell the same.
  double scatter = 0, energy = 0;
  std::complex<double> in_step = 0;
  double amplitude = 0;
  for (std::size_t i = edge; i < n - edge; ++i) {
    const double off = phase[i] - first.phase - slope * (static_cast<double>(i) - first.at);
    scatter += std::norm(signal[i]) * off * off;
    energy += std::norm(signal[i]);
    in_step += std::polar(std::abs(signal[i]), off);
    amplitude += std::abs(signal[i]);
  }
  if (!(energy > 0)) return std::nullopt;
  const double independent = std::max(1.0, static_cast<double>(part) / (2 * constant));
  const double sigma_end = std::sqrt(scatter / energy / independent);
  Line line;
  line.hz = hz + slope / (2 * pi * series.step_s);
  line.sigma_hz = std::sqrt(2.0) * sigma_end / (2 * pi * (last.at - first.at) * series.step_s);
  const double fullness = amplitude * amplitude /
                          (energy * static_cast<double>(n - 2 * edge));  // 1 when it never fades
  line.steadiness = std::abs(in_step) / amplitude * fullness;
  return line;
}

}  // namespace gpoeo::iteration
