// SPDX-License-Identifier: Apache-2.0
// Job x device -> Work: every phase's time, power and activities at every clock pair, and what the
// job costs at default clocks.
#pragma once

#include <memory>

#include "base/result.h"
#include "twin/device_model.h"
#include "twin/job_spec.h"
#include "twin/work.h"

namespace gpoeo::twin {

// kInvalid when it does not fit the capacities of Work or a number makes no sense; the text names
// job, phase and cure. For a measured job the mean over the phases is exactly the table's.
Result<std::unique_ptr<Work>> compile(const JobSpec& job, const DeviceModel& device);

}  // namespace gpoeo::twin
