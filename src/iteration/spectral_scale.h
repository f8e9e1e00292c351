// SPDX-License-Identifier: Apache-2.0
// Joint spectral scaling: the factor by which the frequencies of one trace have to be divided to
// give those of another (reference/ALGORITHMS section 9.1), and the lines that both have.
//
// Thread rule: pure functions.
#pragma once

#include <optional>
#include <vector>

#include "iteration/series.h"

namespace gpoeo::iteration {

struct SpectralScale {
  double ratio = 1;        // periods of B over those of A
  double correlation = 0;  // of the two spectra at that ratio, 0..1
  double runner_up = 0;    // the best correlation at a clearly different ratio
};

// A spectral line that stands out of its surroundings.
struct SpectralPeak {
  double hz = 0;
  double power = 0;   // share of the variance
  double gap_hz = 0;  // to the nearest other peak of comparable height
};

std::optional<SpectralScale> spectral_scale(const Series& a, const Series& b, double least_ratio,
                                            double most_ratio);

// Strongest first.
std::vector<SpectralPeak> spectral_peaks(const Series& series, std::size_t most);

}  // namespace gpoeo::iteration
