// SPDX-License-Identifier: Apache-2.0
// Which of the repeats found in a piece of a launch log is the iteration of the program.
//
// From the shortest repeat that accounts for the stream, up to longer ones as long as these do work
// of their own: an optimizer after micro-steps, an update after time steps. A few launches each so
// many steps (a log line), a last batch of another size, or a stretch that itself repeats (a
// validation) do not make a longer repeat the iteration.
//
// Thread rule: pure functions and plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "iteration/launch_marks.h"
#include "iteration/mark_candidates.h"

namespace gpoeo::iteration {

struct Level {
  LevelPlan plan;
  const Candidate* reference = nullptr;
  std::vector<const Candidate*> members;  // the reference among them
  std::vector<double> offsets;            // of the members in the repeat
};

// Coverage from which a level counts as "the stream".
inline constexpr double kFullCoverage = 0.7;

// Index in `levels`, which are sorted by spacing; nothing when none of them accounts for enough.
std::optional<std::size_t> choose_counted(std::span<const Launch> launches,
                                          std::span<const Level> levels);

}  // namespace gpoeo::iteration
