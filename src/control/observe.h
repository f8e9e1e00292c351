// SPDX-License-Identifier: Apache-2.0
// A window of whole iterations as an observation: time and energy an iteration over all GPUs of
// the job, with their errors. What the controller and the sweep have in common.
#pragma once

#include <optional>
#include <span>

#include "base/clock.h"
#include "control/gpu_group.h"
#include "policy/policy.h"

namespace gpoeo::control {

// `ends` of consecutive iterations, two at least. `relative_error` of their mean time stands in
// where there are too few for batches. `at` counts from `started`; the setting is the caller's to
// fill in. nullopt while the readings that close the window have not come; they are asked for.
// Thread rule: the thread that owns the devices.
std::optional<policy::Observation> observe_window(GpuGroup gpus, std::span<const Instant> ends,
                                                  std::optional<double> relative_error,
                                                  Instant started);

}  // namespace gpoeo::control
