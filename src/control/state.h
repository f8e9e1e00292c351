// SPDX-License-Identifier: Apache-2.0
// Where a job's control loop stands (controller.h).
#pragma once

#include <string_view>

namespace gpoeo::control {

enum class State {
  kWarmup,
  kBaseline,  // default clocks are measured, and counters read beside it
  kProfile,   // counters take longer than the baseline did
  kSearch,
  kHold,
  kDefault,  // default clocks, nothing to gain or to trust
  kIdle,     // the job launches nothing
  kStop,     // default clocks for good
};
std::string_view to_string(State state);

}  // namespace gpoeo::control
