// SPDX-License-Identifier: Apache-2.0
// What a sweep measured, as the text of a response table (docs/response-tables.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/sweep.h"

namespace gpoeo::app {

struct SweepTable {
  std::string workload;
  std::string made_by;  // command line
  std::string gpu;      // "NVIDIA A100-SXM4-80GB (GPU-...)"
  bool simulated = false;
  unsigned gpus = 1;
  std::optional<double> power_limit_w;
  std::vector<double> memory_mhz;  // of the card, descending
  std::size_t windows = 0;         // asked for
  std::string why_partial;         // empty: complete
};

// Drift is taken out (sweep_drift.h) and what that did is in the comments; an unfinished sweep says
// PARTIAL in its first line. Power is one GPU's: the mean over the job's.
std::string to_table(const SweepTable& about, const std::vector<control::SweepPoint>& points);

}  // namespace gpoeo::app
