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
  bool whole_runs = false;  // a whole run of the command at each setting, not iterations
  double seconds = 8;       // at each setting, settling not counted
  double soak_s = 10;       // at each setting, before it is measured
  double warm_up_s = 15;
  int default_every = 6;  // settings between two looks at default clocks
  std::uint64_t seed = 1;
  std::string workload;  // its name in the table; empty: from the command
  std::string output;
  bool force = false;  // write over a file that is there
  std::optional<std::string> gpus;
  BackendOptions backend;
  bool yes = false;  // do not ask
  bool quiet = false;
  bool no_inject = false;
  std::string check;  // only look at this table
};

// Exit codes.
int check_table(const std::string& file);
int measure(const MeasureOptions& options);

}  // namespace gpoeo::app
