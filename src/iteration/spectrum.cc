// SPDX-License-Identifier: Apache-2.0
#include "iteration/spectrum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include <unsupported/Eigen/FFT>

namespace gpoeo::iteration {
namespace {

using std::numbers::pi;
using Complex = std::complex<double>;

std::vector<Complex> forward(std::vector<double> padded) {
  Eigen::FFT<double> fft;
  fft.SetFlag(Eigen::FFT<double>::HalfSpectrum);
  std::vector<Complex> spectrum;
  fft.fwd(spectrum, padded);
  return spectrum;
}

std::vector<double> pad(std::span<const double> value, std::size_t size) {
  std::vector<double> padded(value.begin(), value.end());
  padded.resize(size, 0.0);
  return padded;
}

}  // namespace

std::vector<double> autocorrelation(std::span<const double> value, std::size_t max_lag) {
  const std::size_t n = value.size();
  max_lag = std::min(max_lag, n - 1);
  const std::size_t size = std::bit_ceil(n + max_lag + 1);
  std::vector<Complex> spectrum = forward(pad(value, size));
  for (Complex& c : spectrum) c = std::norm(c);
  Eigen::FFT<double> fft;
  fft.SetFlag(Eigen::FFT<double>::HalfSpectrum);
  std::vector<double> products;
  fft.inv(products, spectrum, static_cast<Eigen::Index>(size));

  std::vector<double> energy(n + 1, 0.0);  // of the first k values
  for (std::size_t i = 0; i < n; ++i) energy[i + 1] = energy[i] + value[i] * value[i];
  std::vector<double> result(max_lag + 1, 0.0);
  for (std::size_t lag = 0; lag <= max_lag; ++lag) {
    const double both = std::sqrt(energy[n - lag] * (energy[n] - energy[lag]));
    result[lag] = both > 0 ? products[lag] / both : 0.0;
  }
  return result;
}

double sample_between(std::span<const double> value, double at) {
  constexpr int kReach = 8;
  const auto middle = static_cast<int>(std::floor(at));
  const auto size = static_cast<int>(value.size());
  double sum = 0;
  for (int i = middle - kReach + 1; i <= middle + kReach; ++i) {
    const double x = at - i;
    const double sinc = std::abs(x) < 1e-9 ? 1.0 : std::sin(pi * x) / (pi * x);
    const double window = 0.5 + 0.5 * std::cos(pi * x / kReach);
    // An autocorrelation is even; beyond the last lag the last one is held.
    sum += value[static_cast<std::size_t>(std::min(std::abs(i), size - 1))] * sinc * window;
  }
  return sum;
}

Spectrum amplitude_spectrum(std::span<const double> value, double step_s, double padding) {
  const std::size_t n = value.size();
  std::vector<double> windowed(value.begin(), value.end());
  double weight = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double x = (static_cast<double>(i) + 0.5) / static_cast<double>(n);
    const double w = 0.5 - 0.5 * std::cos(2 * pi * x);
    windowed[i] *= w;
    weight += w;
  }
  const std::size_t size =
      std::bit_ceil(static_cast<std::size_t>(padding * static_cast<double>(n)));
  Spectrum result;
  result.step_hz = 1.0 / (step_s * static_cast<double>(size));
  for (const Complex& c : forward(pad(windowed, size))) {
    result.amplitude.push_back(2 * std::abs(c) / weight);
  }
  return result;
}

std::vector<Complex> demodulate(std::span<const double> value, double step_s, double hz,
                                double width_hz) {
  const std::size_t n = value.size();
  // Room for the filter's tail, so that the end does not reach round to the start.
  const auto tail = static_cast<std::size_t>(4 / (2 * pi * width_hz) / step_s) + 1;
  const std::size_t size = std::bit_ceil(n + tail);
  std::vector<Complex> half = forward(pad(value, size));
  std::vector<Complex> band(size, Complex(0));
  const double step_hz = 1.0 / (step_s * static_cast<double>(size));
  for (std::size_t i = 0; i < half.size(); ++i) {
    const double away = (static_cast<double>(i) * step_hz - hz) / width_hz;
    if (std::abs(away) < 6) band[i] = 2.0 * half[i] * std::exp(-0.5 * away * away);
  }
  Eigen::FFT<double> fft;
  std::vector<Complex> result;
  fft.inv(result, band);
  result.resize(n);
  const Complex turn = std::polar(1.0, -2 * pi * hz * step_s);
  Complex phase(1);
  for (Complex& c : result) {
    c *= phase;
    phase *= turn;
  }
  return result;
}

}  // namespace gpoeo::iteration
