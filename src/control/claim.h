// SPDX-License-Identifier: Apache-2.0
// From work that compares with its own baseline to what may be said to have been saved, with its
// error, or why nothing can be said. Every rule of what is not claimed is here. Pure.
//
//   net saving    = 1 - energy used / energy that as much work takes at default clocks
//   net slow-down = time taken / time that as much work takes at default clocks - 1
//
// Pauses (validation, checkpoints, idle spells, and other work without a baseline between two
// spells of one kind) count as what they were, with nothing saved or lost in them: no baseline
// holds the like of them. At a held clock they do save something, at most in the proportion of the
// iterations; the interval reaches that far. Other work with a baseline is no pause.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/session.h"

namespace gpoeo::control {

// Work of one kind that was done, and what it took.
struct ComparedWork {
  report::BaselineSection baseline;  // an iteration of it at default clocks
  report::Figure iterations;         // how many it was; exact where they were counted
  double time_s = 0;
  report::Figure energy_j;
};

struct Evidence {
  std::vector<ComparedWork> work;
  double pause_time_s = 0, pause_energy_j = 0;
  double pause_energy_error_j = 0;  // large where readings are missing: mean power is assumed there
  // Share of all work that is in `work`: of the iterations, or of the time where none is counted.
  double compared_share = 0;
  // What the rest is, in words for the user.
  std::string of_all;  // "50 of 152 iterations"
};

// What the run was like, apart from its work.
struct Circumstances {
  bool clocks_may_be_set = true;
  unsigned clock_writes = 0;
  bool several_jobs = false;  // of which only one was followed
  unsigned work_changes = 0;
  double launches_lost = 0;  // share of them that found no room in the ring
};

struct Claim {
  std::optional<report::SavingSection> saving;  // its net figures
  std::string why_not;                          // else
};

Claim claim(const Evidence& evidence);
// Whether figures that the evidence gives can be what they say; why not, else empty.
std::string why_nothing_is_claimed(const Circumstances& circumstances,
                                   const std::optional<report::SavingSection>& saving);

}  // namespace gpoeo::control
