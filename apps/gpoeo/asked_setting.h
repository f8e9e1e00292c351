// SPDX-License-Identifier: Apache-2.0
// Policies that name a setting, "static:1200" and "power-limit:250", against what the card has.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "gpu/device.h"

namespace gpoeo::app {

// One line to tell the user when the nearest setting is held instead of what was asked; empty: what
// was asked is held, or the policy names no setting, or the driver does not list what there is.
// kInvalid when it is outside of what the card can do: then nothing near it can have been meant.
Result<std::string> check_asked_setting(std::string_view policy, const gpu::Capabilities& can);

}  // namespace gpoeo::app
