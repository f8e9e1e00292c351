// SPDX-License-Identifier: Apache-2.0
// Small text parsing that must not throw, guess or accept half a number.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpoeo {

std::string_view trim(std::string_view s);
// Splits at every `separator`; "a,,b" has three parts and "" has one empty part.
std::vector<std::string_view> split(std::string_view s, char separator);
// The whole of `s` as a finite decimal number; kInvalid otherwise ("12x", "nan", "").
Result<double> parse_double(std::string_view s);
// The whole of `s` as a base-10 integer; kInvalid when it is not one or does not fit.
Result<long long> parse_int(std::string_view s);
// A slow-down limit as users write it: "5%", "0.05" or the factor "1.05" all mean 0.05. The
// answer is a fraction in [0, 1); kInvalid for anything else, with what is accepted.
Result<double> parse_slowdown_limit(std::string_view s);

}  // namespace gpoeo
