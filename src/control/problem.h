// SPDX-License-Identifier: Apache-2.0
// What a policy may choose from, as the GPUs of a job allow it.
#pragma once

#include <memory>
#include <span>

#include "control/gpu_channel.h"
#include "policy/policy.h"

namespace gpoeo::control {

// Clocks, memory gears and power limits of the first GPU (a job's GPUs are alike), within what
// somebody else bound before us on any of them. A control that the card or driver does not have at
// all is not offered; one that this user may not set is, so that it can be recommended.
policy::Problem choices(std::span<const std::unique_ptr<GpuChannel>> gpus);

}  // namespace gpoeo::control
