// SPDX-License-Identifier: Apache-2.0
// The integral of power samples over a window. A sample stands for the time since the one before
// it: on an H200 that reading leaves half the residual against the energy counter that holding a
// value forward or trapezoids do (measured 2026-11-30, driver 580.159.04, 300 ticks, 120-950 W).
//
// Plain arithmetic, any thread.
#pragma once

#include <optional>

#include "base/clock.h"
#include "base/units.h"
#include "telemetry/history.h"

namespace gpoeo::telemetry {

struct PowerIntegral {
  Joules energy;
  // One standard error from what sampling cannot see: each edge counts as one usual spacing, each
  // gap as its whole length, at the scatter of the window's samples. A wrong scale of the card's
  // sensor is not in it.
  Joules uncertainty;
  double coverage = 0;  // share of the window outside gaps, 0..1
  Watts deviation;      // of the samples, weighted with the time that each stands for
};

// Nothing when the samples do not reach from t0 to t1. A spacing of more than `gap_factor` usual
// ones is a gap: its sample stands for one usual spacing, the rest is filled with the mean of both
// neighbours.
std::optional<PowerIntegral> integrate(const TimeRing<gpu::PowerSample>& samples, Instant t0,
                                       Instant t1, Duration usual_spacing, double gap_factor);

// Median distance of the newest (at most 128) samples; nothing with fewer than ten.
std::optional<Duration> median_spacing(const TimeRing<gpu::PowerSample>& samples);

}  // namespace gpoeo::telemetry
