// SPDX-License-Identifier: Apache-2.0
// Writes response tables (response_table.h has the format), a line at a time, so that a sweep can
// keep what it has when it is interrupted. Thread rule: pure.
#pragma once

#include <string>
#include <string_view>

#include "response/response_table.h"

namespace gpoeo::response {

// One measurement; repeats are rows of their own.
struct TableRow {
  Setting setting{};  // driver_clocks: `default` in both clock columns
  std::optional<double> time_s{};
  std::optional<double> power_w{};
  CounterValues counters{};
};

// The header with every column, and a row under it; both end in a newline. Fractions are held to
// 0..1. `workload` must be one that the reader takes: see valid_workload_name.
std::string header_line();
std::string row_line(std::string_view workload, const TableRow& row);
// `text` with what a name may not hold (commas, quotes, control characters) replaced by '_', at
// most 256 characters; "job" when nothing is left.
std::string valid_workload_name(std::string_view text);
// Comment lines, each begun with "# ".
std::string comment_lines(std::string_view text);

}  // namespace gpoeo::response
