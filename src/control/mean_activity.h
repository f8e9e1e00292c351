// SPDX-License-Identifier: Apache-2.0
// Counters of several GPUs as one.
#pragma once

#include <span>

#include "base/activity.h"

namespace gpoeo::control {

// Each word's mean over those that have it.
Activity mean_activity(std::span<const Activity> all);

}  // namespace gpoeo::control
