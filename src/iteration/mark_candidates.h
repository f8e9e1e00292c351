// SPDX-License-Identifier: Apache-2.0
// Runs of launches that recur regularly: what the marks of repeats are chosen from.
//
// Thread rule: plain values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "iteration/launch_marks.h"

namespace gpoeo::iteration {

// Below so many occurrences equal spacing can be chance: tolerances are tighter then.
inline constexpr std::size_t kSafeRepeats = 16;

struct Candidate {
  std::uint64_t key = 0;
  std::size_t run = 0;            // index in kRunLengths
  double spacing = 0;             // launches from one occurrence to the next, median
  double shortest = 0;            // 10th percentile of the regular spacings
  double regular = 0;             // share of the spacings that are regular
  std::vector<std::uint32_t> at;  // index of the last launch of each occurrence
};

// Appends the runs of kRunLengths[run] launches that are regular to `out`, and those that are not
// but occur kSafeRepeats times and more to `irregular`, if given. Says whether longer runs are
// worth a look.
bool collect_candidates(std::span<const Launch> launches, std::size_t run,
                        std::vector<Candidate>& out, std::vector<Candidate>* irregular = nullptr);

struct Alternation {
  double share = 0;  // of the spacings of `a` that hold `b` exactly once
  double lag = 0;    // launches from `a` to that `b`, mean
};
// Gives up, with a share of 0, when it will stay below `least_share`.
Alternation alternation(const Candidate& a, const Candidate& b, double least_share);

}  // namespace gpoeo::iteration
