// SPDX-License-Identifier: Apache-2.0
// Inside the card core: what the sensors do at their ticks. Only card*.cc include this.
#pragma once

#include "twin/card.h"

namespace gpoeo::twin {

void initialize_sensors(CardState& state, const DeviceModel& device);
// The next time at which any sensor does something.
std::int64_t next_sensor_event(const CardState& state);
// Does what is due at state.t_ns.
void sensor_events(CardState& state, const DeviceModel& device);

}  // namespace gpoeo::twin
