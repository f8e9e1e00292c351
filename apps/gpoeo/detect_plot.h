// SPDX-License-Identifier: Apache-2.0
// The picture of `gpoeo detect --plot`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "iteration/series.h"

namespace gpoeo::app {

// An SVG document: the trace over time, the trace folded at `period_s` (when there is one), and its
// amplitude spectrum with the harmonics of the period marked. Pure.
std::string detection_svg(std::string_view title, const iteration::PowerTrace& trace,
                          std::optional<double> period_s);

}  // namespace gpoeo::app
