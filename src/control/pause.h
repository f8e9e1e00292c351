// SPDX-License-Identifier: Apache-2.0
// The one rule for what is a pause (validation, checkpoint, a data stall) and not a slow iteration;
// the windows that measure and the books that count must agree on it.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace gpoeo::control {

// Whether a pause lies between `last_end` and `next_end`, after `iterations` consecutive iterations
// that took from `first_end` to `last_end`. Never before there are a few to compare with.
bool is_pause(Instant first_end, Instant last_end, std::uint64_t iterations, Instant next_end);

}  // namespace gpoeo::control
