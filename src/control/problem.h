// SPDX-License-Identifier: Apache-2.0
// What a policy may choose from, as the GPUs of a job allow it.
#pragma once

#include <memory>
#include <span>

#include "base/result.h"
#include "control/gpu_channel.h"
#include "gpu/device.h"
#include "policy/policy.h"

namespace gpoeo::control {

// All GPUs of a job get the same settings. kNotSupported, naming the cards, when they do not have
// the same SM clocks: a clock or a power limit common to cards of two kinds means something else on
// each. A difference in memory clocks alone is none.
Status check_alike(std::span<const std::unique_ptr<gpu::Device>> devices);

// SM clocks, memory gears and power limits that all GPUs have, within what somebody else bound
// before us on any of them; nothing when check_alike() fails. A control that the card or driver
// does not have at all is not offered; one that this user may not set is, so that it can be
// recommended.
policy::Problem choices(std::span<const std::unique_ptr<GpuChannel>> gpus);

}  // namespace gpoeo::control
