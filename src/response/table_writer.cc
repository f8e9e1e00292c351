// SPDX-License-Identifier: Apache-2.0
#include "response/table_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace gpoeo::response {
namespace {

// Seven digits: finer than any sensor, and the same bytes on every machine.
std::string field(const std::optional<double>& value) {
  return value ? fmt::format("{:.7g}", *value) : "";
}

}  // namespace

std::string header_line() {
  std::string line = "workload,sm_clock_mhz,mem_clock_mhz,power_limit_w,time_s,power_w";
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    line += ',';
    line += to_string(static_cast<Counter>(i));
  }
  return line + "\n";
}

std::string row_line(std::string_view workload, const TableRow& row) {
  const Setting& s = row.setting;
  std::string line =
      fmt::format("{},{},{},{},{},{}", workload, s.driver_clocks ? "default" : field(s.sm_mhz),
                  s.driver_clocks ? "default" : field(s.mem_mhz), field(s.power_limit_w),
                  field(row.time_s), field(row.power_w));
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    std::optional<double> value = row.counters.values[i];
    if (value && is_fraction(static_cast<Counter>(i))) value = std::clamp(*value, 0.0, 1.0);
    line += ',';
    line += field(value);
  }
  return line + "\n";
}

std::string valid_workload_name(std::string_view text) {
  constexpr std::size_t kLongest = 256;
  std::string name(trim(text.substr(0, kLongest)));
  for (char& c : name) {
    const auto u = static_cast<unsigned char>(c);
    if (u < 0x20 || u == 0x7f || c == '"' || c == ',') c = '_';
  }
  if (name.empty()) return "job";
  if (name.front() == '#') name.front() = '_';  // would be a comment
  return name;
}

std::string comment_lines(std::string_view text) {
  std::string lines;
  for (const std::string_view line : split(text, '\n')) {
    lines += "# ";
    lines += line;
    lines += '\n';
  }
  return lines;
}

}  // namespace gpoeo::response
