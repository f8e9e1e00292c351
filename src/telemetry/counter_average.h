// SPDX-License-Identifier: Apache-2.0
// Activities of whole iterations from counter readings that know nothing of iterations. Pure.
//
// Counters come in stretches of their own (whole periods of 100 ms on an H200). Of the consecutive
// ones that lie inside the iterations, those are averaged that come closest to a whole number of
// iterations: what sticks out at the ends is the error, told as `remainder`.
#pragma once

#include <span>

#include "base/activity.h"
#include "base/clock.h"
#include "base/result.h"
#include "telemetry/history.h"

namespace gpoeo::telemetry {

struct CounterAverage {
  Activity activity;
  Instant from, to;
  double iterations = 0;  // that [from, to] covers
  // How far `iterations` is from a whole number, over `iterations`: the largest error by that.
  double remainder = 0;
  std::size_t readings = 0;
};

// `ends` are ends of consecutive iterations, ascending, at least two. kNotFound when no readings
// lie inside, or only such as hold no plausible value; kIo when they repeat one another exactly
// and are neither all nothing nor all at their peak: the counters do not move.
Result<CounterAverage> average_counters(const TimeRing<CountersPoint>& readings,
                                        std::span<const Instant> ends);

}  // namespace gpoeo::telemetry
