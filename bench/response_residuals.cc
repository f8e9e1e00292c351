// SPDX-License-Identifier: Apache-2.0
// Prints how far the smoothed response curves lie from the measured tables: one line for each
// workload and memory clock, and a summary over all of them. docs/response-tables.md shows its
// output.
//
//   response_residuals TABLE.csv...
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "response/response_curve.h"

namespace {

using gpoeo::response::Line;
using gpoeo::response::Residuals;

std::string columns(const Residuals& r) {
  return fmt::format("{:7.2f} {:7.2f} {:6g} {:7.2f} {:4}", 100 * r.median, 100 * r.worst,
                     r.worst_at, 100 * r.noise, r.outliers);
}

void print(const std::string& workload, const Line& line) {
  fmt::print("{:<38} {:>6} {:>6} | {}", workload,
             line.mem_mhz ? fmt::format("{:g}", *line.mem_mhz) : "-", line.x.size(),
             columns(line.relative_time.residuals()));
  if (line.power_w) fmt::print(" | {}", columns(line.power_w->residuals()));
  fmt::print("\n");
}

// Median, 90th percentile and worst of the medians of all lines.
std::string summary(std::vector<double> medians) {
  std::ranges::sort(medians);
  const auto quantile = [&medians](double q) {
    return 100 * medians[static_cast<std::size_t>(q * static_cast<double>(medians.size() - 1))];
  };
  return fmt::format("{:.2f} / {:.2f} / {:.2f}", quantile(0.5), quantile(0.9), quantile(1));
}

int print_table(const char* path) {
  const auto table = gpoeo::response::read_response_table(path);
  if (!table) {
    fmt::print(stderr, "response_residuals: {}\n", table.error().text);
    return 2;
  }
  const auto all = gpoeo::response::fit_all(*table);
  if (!all) {
    fmt::print(stderr, "response_residuals: {}\n", all.error().text);
    return 2;
  }
  for (const std::string& comment : table->comments) fmt::print("# {}\n", comment);
  fmt::print("{:<38} {:>6} {:>6} | {:^35} | {:^35}\n", "", "memory", "", "time, %", "power, %");
  const std::string head =
      fmt::format("{:>7} {:>7} {:>6} {:>7} {:>4}", "median", "worst", "at", "noise", "out");
  fmt::print("{:<38} {:>6} {:>6} | {} | {}\n", "workload", "MHz", "points", head, head);
  std::vector<double> time_medians;
  std::vector<double> power_medians;
  for (const auto& curves : *all) {
    for (const Line& line : curves.lines()) {
      print(curves.name(), line);
      time_medians.push_back(line.relative_time.residuals().median);
      if (line.power_w) power_medians.push_back(line.power_w->residuals().median);
    }
  }
  fmt::print(
      "{}: {} lines; median / 90th percentile / worst of their medians, %: time {}, power {}\n",
      path, time_medians.size(), summary(time_medians), summary(power_medians));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: response_residuals TABLE.csv...\n");
    return 2;
  }
  for (int i = 1; i < argc; ++i) {
    if (const int status = print_table(argv[i]); status != 0) return status;
  }
  return 0;
}
