// SPDX-License-Identifier: Apache-2.0
// What `gpoeo measure` was asked to do, and its two halves: sweeping a job over clocks, and saying
// what is done to a table on its way to curves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend.h"

namespace gpoeo::app {

struct MeasureOptions {
  std::vector<std::string> command;
  std::string sweep = "sm";  // sm, memory or both
  std::string clocks;        // "all", or a list of MHz; empty: `points` of them
  int points = 12;           // SM clocks, evenly from a third of the highest to the highest
  int repeats = 1;
  double seconds = 8;        // at each setting, settling not counted
  int default_every = 6;     // settings between two looks at default clocks
  std::uint64_t seed = 1;
  std::string workload;      // its name in the table; empty: from the command
  std::string output;
  std::optional<std::string> gpus;
  BackendOptions backend;
  bool yes = false;
  bool quiet = false;
  bool no_guardian = false;
  std::string check;  // only look at this table
};

// Exit codes.
int check_table(const std::string& file);
int measure(const MeasureOptions& options);

}  // namespace gpoeo::app
