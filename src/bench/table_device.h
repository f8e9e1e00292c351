// SPDX-License-Identifier: Apache-2.0
// A simulated card for a response table whose card is not among the shipped ones.
#pragma once

#include <string>

#include "base/result.h"
#include "response/response_table.h"
#include "twin/device_model.h"

namespace gpoeo::bench {

// Clocks as the table lists them; power limits around the powers it shows; sensors, thermal and
// setting habits of the shipped A100 (assumed, as no table tells them). kInvalid when the table
// has more clocks than a simulated card takes or no clocks at all.
Result<twin::DeviceModel> device_for_table(const response::ResponseTable& table,
                                           const std::string& name);

// Takes off a card's SM clocks below the lowest one that the table measured: nobody knows what a
// job does there.
void drop_unmeasured_clocks(twin::DeviceModel& device, const response::ResponseTable& table);

}  // namespace gpoeo::bench
