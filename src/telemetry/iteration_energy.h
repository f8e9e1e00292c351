// SPDX-License-Identifier: Apache-2.0
// Time and energy per iteration over whole iterations, with standard errors.
//
// The mean is (last - first) / n, so jitter of single ends cancels. Standard errors come from batch
// means (up to 20 batches of whole iterations): single iterations are correlated (the queue of
// launches, power samples that straddle an end), batches much less.
#pragma once

#include <optional>
#include <span>

#include "base/clock.h"
#include "base/result.h"
#include "base/units.h"
#include "telemetry/energy_meter.h"

namespace gpoeo::telemetry {

struct IterationEnergy {
  std::size_t iterations = 0;
  Seconds time;   // per iteration
  Joules energy;  // per iteration
  // Absent with fewer than four batches of at least one iteration.
  std::optional<Seconds> time_error;   // standard error of `time`
  std::optional<Joules> energy_error;  // scatter and the meter's own uncertainty together
  WindowEnergy window;                 // over all of them
};

// `ends` are the end times of consecutive iterations, ascending, at least two: the first one only
// opens the window. Errors as EnergyMeter::energy.
Result<IterationEnergy> iteration_energy(const EnergyMeter& meter, std::span<const Instant> ends);

}  // namespace gpoeo::telemetry
