// SPDX-License-Identifier: Apache-2.0
// A counter window of CUPTI's, or a twin job's in its place: how long it is asked to be, and how
// many iterations it then covered. Its end is not ours to choose, so they are told from the ends of
// iterations that came meanwhile.
#pragma once

#include <span>

#include "control/counter_source.h"

namespace gpoeo::control {

// The metrics of a chip take up to eight passes, each of half a second or of one iteration; 4 to 30
// seconds in all.
Seconds passes_length(Seconds iteration);

struct PassesWindow {
  Instant begin, end;      // from the first sample to the last
  std::size_t passes = 1;  // that share it equally
  Seconds before{};        // an iteration, as measured before the window
};

// Fills `reading.iterations` and `remainder` for the time that it says was counted. The window may
// slow the iterations: the time before it is used only when fewer than two ended inside.
void count_iterations(std::span<const Instant> ends, const PassesWindow& window,
                      CounterReading& reading);

}  // namespace gpoeo::control
