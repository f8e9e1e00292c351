// SPDX-License-Identifier: Apache-2.0
// Counts the repeats of marks that take turns, by their order alone: whatever the distance from one
// repeat to the next.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <vector>

namespace gpoeo::iteration {

// One set of marks, each of which occurs once in a repeat, in the order of their numbers.
class TurnCounter {
 public:
  explicit TurnCounter(std::size_t marks) : seen_(marks, false) {}

  // Mark `which` occurred. True when a repeat ended: with this mark if it is the last one, else
  // with the one before it (the last one was lost). A lost mark is made up for by the others; marks
  // that come again while most of the others have not been seen are extra launches.
  bool on_mark(std::size_t which);
  // The stream ended: whether a repeat of which only lost records can be missing ends with it.
  bool on_stream_end();
  std::size_t marks() const { return seen_.size(); }

 private:
  bool most_seen() const;

  std::vector<bool> seen_;  // in the repeat under way
  std::size_t count_ = 0;
};

}  // namespace gpoeo::iteration
