// SPDX-License-Identifier: Apache-2.0
#include "iteration/launch_tracker.h"

#include <algorithm>
#include <cmath>

namespace gpoeo::iteration {
namespace {

// A mark may be this far out of phase, as a share of the repeat: repeats differ in length, streams
// interleave. Beyond, it is an extra launch, unless all marks are.
constexpr double kPhaseTolerance = 0.35;
// One mark in so many is few.
constexpr std::size_t kFewMarks = 3;
// How far each mark pulls the start of the repeat to what it says.
constexpr double kPull = 0.3;
// At the end of the stream an unfinished repeat with this share of its launches and half of its
// marks counts: only lost records can be missing.
constexpr double kNearlyAll = 0.9;
// Times between ends above this many medians are pauses (validation, checkpoint), not repeats.
constexpr double kPause = 4;

}  // namespace

LaunchTracker::LaunchTracker(const LevelPlan& plan, std::uint64_t first_launch,
                             std::size_t recent_ends)
    : spacing_(plan.spacing),
      shortest_(plan.shortest),
      coverage_(plan.coverage),
      origin_(static_cast<double>(first_launch + plan.origin)),
      recent_ends_(std::max<std::size_t>(recent_ends, 2)),
      start_(origin_ - plan.spacing),
      last_mark_position_(first_launch + plan.origin) {
  for (const Mark& mark : plan.marks) marks_.push_back({mark.offset, -spacing_, 0});
  if (plan.ordered) {
    std::vector<std::size_t> places(plan.groups, 0);
    for (const Mark& mark : plan.marks) turns_.push_back({mark.group, places[mark.group]++});
    for (const std::size_t marks : places) counters_.emplace_back(marks);
    return;
  }
  const double launches_after = spacing_ - 1 - plan.marks.back().offset;
  tail_ = static_cast<std::uint64_t>(
      std::max(0.0, std::floor(launches_after * plan.shortest / plan.spacing)));
}

std::optional<std::uint64_t> LaunchTracker::place(const MarkState& mark, double at) {
  const double elapsed = (at - mark.offset - start_) / spacing_;
  const double repeats = std::round(elapsed);
  const bool in_phase = std::abs(elapsed - repeats) <= kPhaseTolerance;
  // A repeat of which few marks came was cut off by a pause soon after it seemed to begin.
  const bool cut_off = repeats == 1 && current_ > 0 && kFewMarks * seen_in_current_ < marks_.size();
  if (in_phase && repeats <= 1 && !cut_off) {
    out_of_phase_ = 0;
    if (repeats < 0) return current_ - std::min<std::uint64_t>(current_, 1);  // late, swapped
    // In phase with this repeat, but it was here already: the pause before hid the change.
    const bool again = mark.seen_in == current_ && at - mark.last_position > spacing_ / 2;
    return repeats == 1 || again ? current_ + 1 : current_;
  }
  ++out_of_phase_;
  const bool overdue =
      cut_off || elapsed > 1 + kPhaseTolerance;  // a pause, other launches in between
  if (!overdue && out_of_phase_ <= marks_.size()) return std::nullopt;
  out_of_phase_ = 0;
  if (mark.seen_in == current_) return current_ + 1;
  start_ = at - mark.offset;  // the repeat under way began before the pause with few marks
  return current_;
}

void LaunchTracker::on_turn(std::size_t which, std::uint64_t position, std::int64_t t_ns) {
  const Turn& turn = turns_[which];
  TurnCounter& counter = counters_[turn.group];
  const bool is_last = turn.place + 1 == counter.marks();
  if (counter.on_mark(turn.place)) complete(completed_ + 1, is_last ? t_ns : last_mark_ns_);
  last_mark_position_ = position;
  last_mark_ns_ = t_ns;
}

void LaunchTracker::on_mark(std::size_t which, std::uint64_t position, std::int64_t t_ns) {
  if (!turns_.empty()) return on_turn(which, position, t_ns);
  const double at = static_cast<double>(position);
  if (at < origin_) return;
  MarkState& mark = marks_[which];
  const auto number = place(mark, at);
  if (!number) return;
  const double start = at - mark.offset;
  if (*number > current_) {
    begin_repeat(*number, std::abs(start - start_ - spacing_) <= kPhaseTolerance * spacing_
                              ? start_ + spacing_
                              : start);
  }
  if (*number == current_) {
    // Once: launches of this kind that come again in this repeat are extra ones.
    if (mark.seen_in != current_) {
      start_ += kPull * (start - start_);
      ++seen_in_current_;
    }
    // The marks are in the next repeat: the last mark of the one before was lost.
    if (current_ > completed_ + 1 && seen_in_current_ >= std::min<std::size_t>(2, marks_.size())) {
      complete(current_ - 1, last_mark_ns_);
    }
  }
  mark.seen_in = std::max(mark.seen_in, *number);
  mark.last_position = at;
  last_mark_position_ = position;
  last_mark_ns_ = t_ns;
  if (which + 1 == marks_.size() && *number > completed_) {
    deadline_ = position + tail_;
    deadline_number_ = *number;
    if (tail_ == 0) on_deadline(t_ns);
  }
}

void LaunchTracker::begin_repeat(std::uint64_t number, double start) {
  current_ = number;
  start_ = start;
  seen_in_current_ = 0;
}

void LaunchTracker::on_deadline(std::int64_t t_ns) {
  if (deadline_number_ > completed_) complete(deadline_number_, t_ns);
  deadline_ = kNoDeadline;
}

void LaunchTracker::complete(std::uint64_t number, std::int64_t t_ns) {
  for (; completed_ < number; ++completed_) ends_.push_back(t_ns);
  while (ends_.size() > recent_ends_) ends_.pop_front();
  if (deadline_number_ <= completed_) deadline_ = kNoDeadline;
}

void LaunchTracker::on_stream_end(std::uint64_t position, std::int64_t t_ns) {
  if (!turns_.empty()) {
    for (TurnCounter& counter : counters_) {
      if (counter.on_stream_end()) complete(completed_ + 1, t_ns);
    }
    return;
  }
  const double launches = static_cast<double>(position) + 1 - start_;
  const bool marked = 2 * seen_in_current_ >= marks_.size();
  if (current_ > completed_ && marked && launches >= kNearlyAll * shortest_) {
    complete(current_, t_ns);
  }
}

std::optional<std::int64_t> LaunchTracker::last_end_ns() const {
  if (ends_.empty()) return std::nullopt;
  return ends_.back();
}

std::optional<double> LaunchTracker::period_s() const {
  if (ends_.size() < 2) return std::nullopt;
  // The newest end is not confirmed by a next repeat, and so left out where there are others.
  const std::size_t confirmed = std::max<std::size_t>(2, ends_.size() - 1);
  std::vector<double> gaps;
  for (std::size_t i = 0; i + 1 < confirmed; ++i) {
    gaps.push_back(static_cast<double>(ends_[i + 1] - ends_[i]) * 1e-9);
  }
  auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
  std::ranges::nth_element(gaps, middle);
  const double longest = kPause * *middle;
  double sum = 0;
  std::size_t n = 0;
  for (const double gap : gaps) {
    if (gap > longest) continue;
    sum += gap;
    ++n;
  }
  return n == 0 ? std::nullopt : std::optional(sum / static_cast<double>(n));
}

std::size_t LaunchTracker::memory_bytes() const {
  return sizeof(*this) + marks_.capacity() * sizeof(MarkState) +
         ends_.size() * sizeof(std::int64_t);
}

}  // namespace gpoeo::iteration
