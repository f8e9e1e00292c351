// SPDX-License-Identifier: Apache-2.0
// Power readings that more than one exported function gives.
#pragma once

#include "twin/nvml/front.h"

namespace gpoeo::twin::front {

// As nvmlDeviceGetPowerUsage: the 1 s average from Ampere on, but for GA100; instantaneous before.
Result<Watts> power_usage(const CardFront& card);
unsigned long long to_millijoules(Joules energy);

}  // namespace gpoeo::twin::front
