// SPDX-License-Identifier: Apache-2.0
// All GPUs of a job as one: they get the same clocks.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "control/gpu_channel.h"
#include "policy/policy.h"

namespace gpoeo::control {

using GpuGroup = std::span<const std::unique_ptr<GpuChannel>>;

// Stops at the first that fails.
Status set_clocks(GpuGroup gpus, const policy::ClockSetting& setting);
// Tries each; what fails is in the channel's notes and in the report.
void restore(GpuGroup gpus);
// Whether some control of some GPU is not as it was found.
bool any_touched(GpuGroup gpus);
// When the last one had settled after set_clocks(); nullopt: not yet.
std::optional<Instant> settled(GpuGroup gpus, Instant now);
std::optional<Watts> newest_power(GpuGroup gpus);

}  // namespace gpoeo::control
