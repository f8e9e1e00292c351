// SPDX-License-Identifier: Apache-2.0
// One reading of a GPU's counters, from finding the driver and CUPTI to the last pass.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gpoeo::counters {

struct Request {
  std::string gpu;
  std::string metrics_file;
  std::vector<std::string> cupti;  // paths to try before the usual ones
  std::int64_t job = 0;            // a process whose libcupti is tried after those; 0: none
  double seconds = 4;
  double iteration_s = 0;  // 0: not known
  bool until_input_closes = false;
  bool by_cycles = false;  // as on cards without a timer for it
  bool check_only = false;
};

struct Answer {
  std::string error;  // one line with the cure; empty: there are counters (or could be: check_only)
  std::string chip, cupti_path;
  std::size_t passes = 0;  // that were read; with check_only: that would be
  std::int64_t begin_unix_ns = 0, end_unix_ns = 0;
  double covered_s = 0;                                // that the samples cover
  std::vector<std::pair<std::string, double>> values;  // by name (base/activity.h)
};

// Changes this process's environment; may stop when standard input is closed. Thread rule: the main
// thread, once.
Answer read_counters(const Request& request);

}  // namespace gpoeo::counters
