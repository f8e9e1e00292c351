// SPDX-License-Identifier: Apache-2.0
#include "control/counted_work.h"

#include <algorithm>
#include <iterator>

#include "control/pause.h"

namespace gpoeo::control {
namespace {

constexpr Duration kRateSpan = std::chrono::seconds(10);
// Ends kept so that a change of work that was only noticed later can be put where it began.
constexpr Duration kRecentSpan = std::chrono::seconds(60);

}  // namespace

std::vector<RunBreak> CountedWork::add(std::span<const Instant> ends) {
  auto& runs = runs_[current_];
  std::vector<RunBreak> breaks;
  for (const Instant end : ends) {
    const bool pause =
        !reopen_run_ && !runs.empty() &&
        is_pause(runs.back().first_end, runs.back().last_end, runs.back().iterations, end);
    if (pause || reopen_run_ || runs.empty()) {
      reopen_run_ = false;
      breaks.push_back({pause ? std::optional(runs.back().last_end) : std::nullopt, end});
      runs.push_back({end, end, 0});
    } else {
      ++runs.back().iterations;
      runs.back().last_end = end;
    }
    ++iterations_;
    recent_ends_.push_back(end);
  }
  while (!recent_ends_.empty() && recent_ends_.back() - recent_ends_.front() > kRecentSpan) {
    recent_ends_.pop_front();
  }
  return breaks;
}

// The phase's first end opens a run of its own: between the two the job did other work.
std::vector<RunBreak> CountedWork::enter_phase(std::size_t phase, std::optional<Instant> began) {
  if (phase >= runs_.size()) runs_.resize(phase + 1);
  // The ends since it began are the new phase's: taken from the old one and given again.
  const auto moved = began ? take_back(*began) : std::vector<Instant>();
  current_ = phase;
  reopen_run_ = true;
  return add(moved);
}

// Uncounts the ends of the current phase since then, as far as they are kept: the one before them
// ends what is left of their run. Ends of an earlier phase are in no run of this one and stay.
std::vector<Instant> CountedWork::take_back(Instant began) {
  auto& runs = runs_[current_];
  std::vector<Instant> taken;
  while (!runs.empty() && !recent_ends_.empty() && recent_ends_.back() >= began &&
         recent_ends_.back() == runs.back().last_end) {
    IterationRun& run = runs.back();
    if (run.iterations > 0 && recent_ends_.size() < 2) break;
    taken.push_back(recent_ends_.back());
    recent_ends_.pop_back();
    --iterations_;
    if (run.iterations == 0) {
      runs.pop_back();
    } else {
      --run.iterations;
      run.last_end = recent_ends_.back();
    }
  }
  std::ranges::reverse(taken);
  return taken;
}

std::span<const IterationRun> CountedWork::runs(std::size_t phase) const {
  return phase < runs_.size() ? std::span<const IterationRun>(runs_[phase])
                              : std::span<const IterationRun>();
}

std::optional<double> CountedWork::rate(Instant now) const {
  const auto first =
      std::ranges::find_if(recent_ends_, [&](Instant end) { return now - end <= kRateSpan; });
  const auto count = std::distance(first, recent_ends_.end());
  if (count < 2) return std::nullopt;
  return static_cast<double>(count - 1) / to_seconds(recent_ends_.back() - *first).value();
}

}  // namespace gpoeo::control
