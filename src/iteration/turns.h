// SPDX-License-Identifier: Apache-2.0
// Repeats found by order instead of distance: runs of launches that take turns, one of each between
// two of any other, come from the same loop however its repeats vary in length (time steps,
// micro-steps by a token budget, line searches, experts).
//
// Thread rule: pure functions and plain values.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "iteration/level_choice.h"
#include "iteration/mark_candidates.h"

namespace gpoeo::iteration {

struct OrderedMarks {
  std::vector<Mark> marks;          // in the order of a repeat
  std::size_t least = 0, most = 0;  // how often each of them occurred
};
// Those members of a level that take turns with its reference in at least `least_share` of the
// repeats; nothing when there are too few, or they do not agree on how often (lost records).
std::optional<OrderedMarks> marks_in_turn(const Level& level, double least_share);

// Levels whose marks take turns all through the stream, at whatever distance. Candidates of up to
// kRunLengths[run] launches are looked at.
std::vector<Level> find_turns(std::span<const Launch> launches,
                              std::span<const Candidate* const> candidates, std::size_t run);

// A stream of several kinds of steps in no fixed order that have nothing in common (a CUDA graph
// for each size): blocks of launches, each always whole, that follow each other. Nothing when they
// do not make up the stream.
std::optional<Level> find_blocks(std::span<const Launch> launches,
                                 std::span<const Candidate* const> candidates);

}  // namespace gpoeo::iteration
