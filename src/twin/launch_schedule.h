// SPDX-License-Identifier: Apache-2.0
// The kernel launches of a simulated job, after the fact: what an injected library would have
// logged. Within an iteration they lie where its phases lay at default clocks; iterations' ends are
// exact.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "twin/work.h"

namespace gpoeo::twin {

struct Launch {
  Instant time;
  std::uint64_t function_id;
};

// Appends the launches of iteration number `iteration` (from 0), in order of time.
void launches_of_iteration(const Work& work, int variant, std::int64_t iteration, Instant begin,
                           Instant end, std::vector<Launch>& out);

// How many whole iterations the job does alone in `seconds` at default clocks, at least 1.
std::int64_t iterations_in(const Work& work, Seconds seconds);

}  // namespace gpoeo::twin
