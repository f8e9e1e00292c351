// SPDX-License-Identifier: Apache-2.0
// The mean frequency of a rhythm over a whole window, by counting its turns: band-pass around one
// harmonic, unwrap the phase, and take how far it came from the first to the last part of the
// window. That is the number of iterations over the time, as an iteration log would give it, and
// stays right when single iterations jitter (a spectral line only widens then).
//
// Thread rule: pure functions.
#pragma once

#include <optional>

#include "iteration/series.h"

namespace gpoeo::iteration {

struct Line {
  double hz = 0;
  // One standard deviation of `hz` by the scatter of the phase.
  double sigma_hz = 0;
  // 0..1: how steady the rhythm is; near 1 the phase runs evenly and the line never fades. Below
  // about 0.5 turns may have been missed.
  double steadiness = 0;
};

// `width_hz`: deviation of the Gaussian band; neighbours nearer than three widths disturb. Nothing
// when the window is too short for the band (less than 6 of its time constants).
std::optional<Line> track_line(const Series& series, double hz, double width_hz);

}  // namespace gpoeo::iteration
