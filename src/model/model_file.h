// SPDX-License-Identifier: Apache-2.0
// Inner part of predictor.h: a model file behind its first line, where the checksum has been
// looked at already. Hostile bytes are refused, never followed. Thread rule: pure.
#pragma once

#include <string_view>

#include "base/result.h"
#include "model/predictor.h"

namespace gpoeo::model {

Result<Predictor> parse_model_body(std::string_view body, std::string_view name);

}  // namespace gpoeo::model
