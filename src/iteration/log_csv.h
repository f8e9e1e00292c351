// SPDX-License-Identifier: Apache-2.0
// The two CSV files of recordings (DESIGN section 10): power traces `t_us,power_mW` and launch logs
// `t_ns,function_id`, plain or gzipped. A header line names the columns; their order is free and
// further ones are allowed. A launch log may have a column `stream`.
//
// Thread rule: pure functions. Errors: kInvalid with one line that names file, line and field;
// kNotFound, kNoPermission or kIo for files that cannot be read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "iteration/series.h"

namespace gpoeo::iteration {

struct LaunchRow {
  std::int64_t t_ns = 0;
  std::uint64_t function_id = 0;
  std::uint32_t stream = 0;
};

// `name` is the file as errors name it. Time starts at 0 with the first sample and must rise.
Result<PowerTrace> parse_trace_csv(std::string_view text, std::string_view name);
// Rows in the order of the file. Times may stand still, not step back.
Result<std::vector<LaunchRow>> parse_launch_csv(std::string_view text, std::string_view name);

// Files of up to 1 GiB of text.
Result<PowerTrace> read_trace_csv(const std::filesystem::path& path);
Result<std::vector<LaunchRow>> read_launch_csv(const std::filesystem::path& path);

}  // namespace gpoeo::iteration
