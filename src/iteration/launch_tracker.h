// SPDX-License-Identifier: Apache-2.0
// Counts the repeats of one level online, from the marks that launch_marks.h found.
//
// A loop locked to the phase of the marks: the start of the current repeat is known, each mark says
// by its offset whether it belongs to this repeat or the next, and corrects the start a little. A
// lost mark is made up for by the others, one of them out of phase is an extra launch. After a
// pause (launches of other kinds) the loop locks again on the next marks and counts one repeat,
// however long the pause was. Order among marks does not matter, so interleaved streams may swap
// them. Levels whose repeats vary too much in length for that are counted by the order of their
// marks (turn_counter.h).
//
// Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "iteration/launch_marks.h"
#include "iteration/turn_counter.h"

namespace gpoeo::iteration {

class LaunchTracker {
 public:
  // `first_launch`: position in the stream of the first launch of the piece that was learned.
  LaunchTracker(const LevelPlan& plan, std::uint64_t first_launch, std::size_t recent_ends);

  // Mark `which` (index in the plan) ended at stream position `position`.
  void on_mark(std::size_t which, std::uint64_t position, std::int64_t t_ns);
  // Position at which on_deadline() has to be called: the end of a repeat whose last mark is seen.
  std::uint64_t deadline() const { return deadline_; }
  void on_deadline(std::int64_t t_ns);
  // The stream ended after `position` at `t_ns`.
  void on_stream_end(std::uint64_t position, std::int64_t t_ns);

  static constexpr std::uint64_t kNoDeadline = ~std::uint64_t{0};

  std::uint64_t completed() const { return completed_; }
  std::optional<std::int64_t> last_end_ns() const;
  const std::deque<std::int64_t>& ends() const { return ends_; }
  // Mean of the recent times between ends, those of pauses left out.
  std::optional<double> period_s() const;
  std::uint64_t last_mark_position() const { return last_mark_position_; }
  double spacing() const { return spacing_; }
  double coverage() const { return coverage_; }
  std::size_t memory_bytes() const;

 private:
  struct MarkState {
    double offset = 0;
    double last_position = 0;
    std::uint64_t seen_in = 0;  // number of the repeat, from 1
  };

  // The number of the repeat that a mark at `at` belongs to; nothing for an extra launch.
  std::optional<std::uint64_t> place(const MarkState& mark, double at);
  void on_turn(std::size_t which, std::uint64_t position, std::int64_t t_ns);
  void begin_repeat(std::uint64_t number, double start);
  void complete(std::uint64_t number, std::int64_t t_ns);

  double spacing_;
  double shortest_;
  double coverage_;
  double origin_;
  std::uint64_t tail_ = 0;  // launches from the last mark to the end of the repeat
  std::size_t recent_ends_;
  std::vector<MarkState> marks_;
  struct Turn {
    std::size_t group = 0, place = 0;
  };
  std::vector<Turn> turns_;            // of each mark; empty when distances are counted
  std::vector<TurnCounter> counters_;  // of each group
  std::uint64_t current_ = 0;          // number of the repeat under way
  double start_;                       // its first position
  std::size_t seen_in_current_ = 0;
  std::size_t out_of_phase_ = 0;  // marks in a row
  std::uint64_t completed_ = 0;
  std::uint64_t deadline_ = kNoDeadline;
  std::uint64_t deadline_number_ = 0;
  std::uint64_t last_mark_position_;
  std::int64_t last_mark_ns_ = 0;
  std::deque<std::int64_t> ends_;
};

}  // namespace gpoeo::iteration
