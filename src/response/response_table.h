// SPDX-License-Identifier: Apache-2.0
// Response tables: what was measured of a job at each clock or power limit, read from CSV.
//
//   workload,sm_clock_mhz,mem_clock_mhz,power_limit_w,time_s,power_w[,counter...]
//
// Columns come in any order; `workload`, `time_s` and `power_w` must be there, and at least one of
// `sm_clock_mhz` and `power_limit_w`. Byte-order mark, CRLF, blank lines and comment lines (first
// character '#') are fine. An empty field is unknown. A counter column that we do not know is an
// error. Rows of one workload at one setting are repeats: they are averaged and their scatter kept;
// of four and more, those far from their median are left out.
//
// The default setting of a workload is the row with `default` in both clock columns (with the
// highest power limit, where there are several); without one it is the row with the highest memory
// clock, then the highest SM clock, then the highest power limit, an empty limit being the card's
// own and above any other. It must have both time and power.
//
// What comes out is plain numbers as measured; response_curve.h makes smooth curves of them.
// Thread rule: values; nothing is shared. Errors: kInvalid with file, line, field and cure.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpoeo::response {

// Mean activity over the run: fractions of the unit's peak, 0..1, and PCIe bytes per second. The
// order is that of the columns in DESIGN section 10.
enum class Counter {
  kGrActive,
  kSmActive,
  kSmOccupancy,
  kTensorActive,
  kDramActive,
  kFp64Active,
  kFp32Active,
  kFp16Active,
  kPcieTxBytesPerS,
  kPcieRxBytesPerS,
  kCount,
};
inline constexpr std::size_t kCounterCount = static_cast<std::size_t>(Counter::kCount);
// The column's name: "gr_active".
std::string_view to_string(Counter counter);
// A fraction 0..1; otherwise bytes per second.
constexpr bool is_fraction(Counter c) {
  return c != Counter::kPcieTxBytesPerS && c != Counter::kPcieRxBytesPerS;
}

// Unknown stays absent; index with a Counter.
struct CounterValues {
  std::array<std::optional<double>, kCounterCount> values{};

  const std::optional<double>& operator[](Counter c) const {
    return values[static_cast<std::size_t>(c)];
  }
  std::optional<double>& operator[](Counter c) { return values[static_cast<std::size_t>(c)]; }
  bool operator==(const CounterValues&) const = default;
};

// What was set while measuring. Absent: the table does not say (for the power limit: the card's
// own limit). `driver_clocks`: the row had `default` in both clock columns, so the driver chose.
struct Setting {
  std::optional<double> sm_mhz{};
  std::optional<double> mem_mhz{};
  std::optional<double> power_limit_w{};
  bool driver_clocks = false;
  bool operator==(const Setting&) const = default;
};
// "1410 MHz SM, 1215 MHz memory, 250 W".
std::string to_string(const Setting& setting);

// One setting of one workload; the mean over its repeats. Time or power is known, mostly both.
struct Point {
  Setting setting{};
  std::optional<double> time_s{};   // per iteration, epoch or run: whatever the table counts
  std::optional<double> power_w{};  // mean over that time
  CounterValues counters{};
  int repeats = 1;
  // Times and powers among the repeats that were not averaged: far off where four or more agree.
  int left_out = 0;
  // Sample standard deviation over mean of the repeats; absent for fewer than two values.
  std::optional<double> time_scatter{};
  std::optional<double> power_scatter{};

  std::optional<double> energy_j() const;
};

struct Workload {
  std::string name;
  // By memory clock descending, then power limit descending, then SM clock descending (unknown
  // last); rows with driver_clocks come first. No setting twice.
  std::vector<Point> points;
  std::size_t default_index = 0;

  const Point& default_point() const { return points[default_index]; }
};

struct ResponseTable {
  std::string source;                 // the file's name, for messages
  std::vector<std::string> comments;  // comment lines, without the '#': where the table is from
  std::vector<Workload> workloads;    // in order of first appearance; never empty

  // kNotFound, naming what there is.
  Result<const Workload*> find(std::string_view workload) const;
};

// `source` names the text in messages. At most 200 000 rows and 256 characters a name.
Result<ResponseTable> parse_response_table(std::string_view text, std::string_view source);
Result<ResponseTable> read_response_table(const std::filesystem::path& path);

}  // namespace gpoeo::response
