// SPDX-License-Identifier: Apache-2.0
// Fourier tools for one evenly spaced series.
//
// Thread rule: pure functions.
#pragma once

#include <complex>
#include <cstddef>
#include <span>
#include <vector>

namespace gpoeo::iteration {

// Correlation of the series with itself shifted by 0..max_lag samples, each divided by the energies
// of the two parts that overlap, so that a perfectly periodic series reaches 1 at every lag.
std::vector<double> autocorrelation(std::span<const double> value, std::size_t max_lag);

// `at` need not be whole: the autocorrelation of a band-limited signal is itself band-limited, and
// is interpolated so (windowed sinc).
double sample_between(std::span<const double> value, double at);

struct Spectrum {
  double step_hz = 0;
  std::vector<double> amplitude;  // at 0, step, 2 step... up to the Nyquist frequency
};
// Hann window, zeros appended to at least `padding` times the length.
Spectrum amplitude_spectrum(std::span<const double> value, double step_s, double padding);

// The part of the series around `hz` (Gaussian, deviation `width_hz`), turned back by `hz`: its
// angle is the phase that the rhythm runs ahead of `hz`. The first and last 1 / (2 pi width_hz)
// seconds suffer from the edge.
std::vector<std::complex<double>> demodulate(std::span<const double> value, double step_s,
                                             double hz, double width_hz);

}  // namespace gpoeo::iteration
