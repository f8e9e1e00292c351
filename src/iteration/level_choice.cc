// SPDX-License-Identifier: Apache-2.0
#include "iteration/level_choice.h"

#include <algorithm>
#include <cmath>

#include "iteration/own_work.h"

namespace gpoeo::iteration {
namespace {

constexpr double kCountedCoverage = 0.3;  // from which a level may be counted at all
// Share of the longer repeats that hold the same number of shorter ones.
constexpr double kSameNumberShare = 0.85;
// Most repeats of the shorter level in one of the longer for the longer to be the step of a program
// (gradient accumulation, layers); above, it is a validation cycle, an epoch.
constexpr double kMostInner = 48;
// What is shorter is a layer or a time step, and not a training step, ...
constexpr double kShortestStep_s = 1e-4;
// ... and what is shorter than this may be one.
constexpr double kShortStep_s = 1e-3;
constexpr double kFewLaunches = 16;
constexpr double kNearlyAll = 0.85;  // coverage: what accounts for less may be a part of each step
// Least share of a longer repeat that is its own work; any will do for so few shorter ones: large
// micro-steps are gathered by the four or eight, log lines are written each ten or more steps.
constexpr double kLeastOwnWork = 0.005;
constexpr double kFewInner = 8;
constexpr std::ptrdiff_t kMoreThanALogLine = 4;  // kinds of launches
constexpr double kSimilarSpacing = 1.25;
// Square of the coefficient of variation. Chance events that are in less than half of the steps
// have more than 0.5.
constexpr double kMostVariation = 0.36;
// Without a repeat that accounts for the stream, the one that covers most of it is counted only if
// it is as regular: what lies between are other phases then.
constexpr double kRegularPart = 0.85;
// One that has taken over did so at least this share of the stream ago, and still goes on.
constexpr double kLeastSince = 0.1;
constexpr double kStillThere = 2;
constexpr std::size_t kMembersLookedAt = 32;

double period_s(std::span<const Launch> launches, const Level& level) {
  const auto& at = level.reference->at;
  return static_cast<double>(launches[at.back()].t_ns - launches[at.front()].t_ns) * 1e-9 /
         static_cast<double>(at.size() - 1);
}

// How many of `inner` lie in each of `outer`.
std::vector<double> numbers_inside(const Level& inner, const Level& outer) {
  std::vector<double> numbers;
  const auto& in = inner.reference->at;
  const auto& out = outer.reference->at;
  auto next = std::ranges::lower_bound(in, out.front());
  for (std::size_t i = 0; i + 1 < out.size(); ++i) {
    const auto first = next;
    next = std::lower_bound(next, in.end(), out[i + 1]);
    numbers.push_back(static_cast<double>(next - first));
  }
  return numbers;
}

// How many `inner` repeats `outer` holds: when that is the same number nearly every time, or varies
// less than between chance events.
std::optional<double> number_inside(std::vector<double> numbers) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::ranges::nth_element(numbers, middle);
  const double median = *middle;
  // One lost record makes the number differ by one.
  const auto same =
      std::ranges::count_if(numbers, [&](double n) { return std::abs(n - median) <= 1; });
  const auto count = static_cast<double>(numbers.size());
  if (static_cast<double>(same) >= kSameNumberShare * count) return median;
  double sum = 0, squares = 0;
  for (const double n : numbers) {
    sum += n;
    squares += n * n;
  }
  const double mean = sum / count;
  const bool by_chance = squares / count - mean * mean > kMostVariation * mean * mean;
  return by_chance ? std::nullopt : std::optional(median);
}

std::vector<std::uint32_t> marks_of(const Level& level) {
  std::vector<std::uint32_t> at;
  const std::size_t stride = level.members.size() / kMembersLookedAt + 1;
  for (std::size_t i = 0; i < level.members.size(); i += stride) {
    at.insert(at.end(), level.members[i]->at.begin(), level.members[i]->at.end());
  }
  std::ranges::sort(at);
  return at;
}

std::ptrdiff_t single_marks(const Level& level) {
  return std::ranges::count(level.members, std::size_t{0}, &Candidate::run);
}

// Whether the iteration is rather `outer` than `inner`, a repeat that accounts for the stream.
bool is_the_step(std::span<const Launch> launches, const Level& inner, const Level& outer) {
  const double period = period_s(launches, inner);
  const bool no_step = period < kShortestStep_s;
  const bool maybe_no_step = period < kShortStep_s || inner.plan.spacing < kFewLaunches;
  const bool part = inner.plan.coverage < kNearlyAll;
  const double most =
      no_step || (maybe_no_step && part) ? static_cast<double>(launches.size()) : kMostInner;
  const auto number = number_inside(numbers_inside(inner, outer));
  if (!number || *number < 2 || *number > most) return false;
  const OwnWork own = own_work(launches, inner.reference->at, outer.reference->at, marks_of(outer));
  if (own.is_loop && !(maybe_no_step && part)) return false;
  const bool few = *number <= kFewInner && single_marks(outer) >= kMoreThanALogLine;
  return no_step || own.share >= kLeastOwnWork || (own.share > 0 && few);
}

// Whether nothing else than this repeat has come since it first came.
bool has_taken_over(const Level& level, std::size_t launches) {
  const auto& at = level.reference->at;
  const auto total = static_cast<double>(launches), since = total - at.front();
  return at.size() >= kSafeRepeats && level.plan.coverage * total >= kFullCoverage * since &&
         since >= kLeastSince * total && total - at.back() <= kStillThere * level.plan.spacing;
}

// When no repeat accounts for the stream: the one that covers most of it, if it is regular (what
// lies between are other phases), or the one that has taken over (what came before was a start).
std::optional<std::size_t> choose_part(std::span<const Launch> launches,
                                       std::span<const Level> levels) {
  std::optional<std::size_t> widest, latest;
  const auto wider = [&](std::size_t i, const std::optional<std::size_t>& best) {
    return !best || levels[i].plan.coverage > levels[*best].plan.coverage;
  };
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const Level& level = levels[i];
    const bool in_phases = level.plan.ordered || level.reference->regular >= kRegularPart;
    if (!in_phases || period_s(launches, level) < kShortestStep_s) continue;
    if (level.plan.coverage >= kCountedCoverage && wider(i, widest)) widest = i;
    if (has_taken_over(level, launches.size()) && wider(i, latest)) latest = i;
  }
  return widest ? widest : latest;
}

}  // namespace

std::optional<std::size_t> choose_counted(std::span<const Launch> launches,
                                          std::span<const Level> levels) {
  const auto full =
      std::ranges::find_if(levels, [](const Level& l) { return l.plan.coverage >= kFullCoverage; });
  if (full == levels.end()) return choose_part(launches, levels);
  auto counted = full;
  // Order may put together what only happens to take turns; the loop itself has the most marks.
  for (auto l = full + 1; full->plan.ordered && l != levels.end(); ++l) {
    const bool similar = l->plan.spacing <= kSimilarSpacing * full->plan.spacing;
    if (similar && l->plan.coverage >= kFullCoverage && single_marks(*l) > single_marks(*counted)) {
      counted = l;
    }
  }
  for (auto l = counted + 1; l != levels.end(); ++l) {
    if (l->plan.coverage >= kFullCoverage && is_the_step(launches, *counted, *l)) counted = l;
  }
  return static_cast<std::size_t>(counted - levels.begin());
}

}  // namespace gpoeo::iteration
