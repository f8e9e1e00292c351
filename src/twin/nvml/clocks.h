// SPDX-License-Identifier: Apache-2.0
// Facts of a card's clocks that more than one exported function gives.
#pragma once

#include "twin/nvml/front.h"

namespace gpoeo::twin::front {

// The video clock follows the SM clock; the model has none of its own.
unsigned video_mhz(unsigned sm_mhz);
unsigned top_sm_mhz(const DeviceModel& device);
// P0 at the highest memory clock, P2 at the next; P8 at the lowest of three or more.
int performance_state(const DeviceModel& device, unsigned memory_mhz);

}  // namespace gpoeo::twin::front
