// SPDX-License-Identifier: Apache-2.0
// How many iterations a counter window of CUPTI's covers. Its end is not ours to choose, so they
// are told from the ends of iterations that came meanwhile.
#pragma once

#include <span>

#include "control/counter_source.h"

namespace gpoeo::control {

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
