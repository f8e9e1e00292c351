// SPDX-License-Identifier: Apache-2.0
// Inside compile: what a job costs at default clocks, the judge's yardstick.
#pragma once

#include "twin/device_model.h"
#include "twin/work.h"

namespace gpoeo::twin {

// Sets reference_s and reference_w of the stage's phases. Where the power cap can bind at default
// clocks the governor decides what they cost, so the stage is run through the card core, without
// chance and at thermal balance, and what came out is what is set.
void set_reference(Work& work, const DeviceModel& device, int stage);

}  // namespace gpoeo::twin
