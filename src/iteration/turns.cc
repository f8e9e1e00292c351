// SPDX-License-Identifier: Apache-2.0
#include "iteration/turns.h"

#include <algorithm>
#include <cmath>

namespace gpoeo::iteration {
namespace {

// Marks that take turns occur equally often, but for lost records and where the log was cut.
constexpr double kSameCount = 0.01;
constexpr std::size_t kLeastMarks = 3;
// Without equal distances it takes more repeats to be sure: the layers of one long step take turns.
constexpr std::size_t kLeastTurns = 48;
constexpr std::size_t kMostMarks = 16;
constexpr double kSureShare = 0.95;
// Marks less sure than the surest by more are left out: they occur elsewhere too.
constexpr double kAsSure = 0.005;
// Candidates looked at in all before the rest is given up.
constexpr std::size_t kMostLooks = std::size_t{1} << 16;
constexpr std::size_t kMostInVain = 32;  // tries before the first group
// What is more regular is a mark by distance.
constexpr double kVeryRegular = 0.95;
// Distances of a step vary, but not as those between chance events: the middle 80 % of them lie
// within so many medians.
constexpr double kMostSpread = 1.25;
constexpr double kPause = 3;  // medians
constexpr double kBlocksCoverage = 0.8;
constexpr std::size_t kLeastBlocks = 32;
constexpr double kLongestRow = 4;  // blocks of one kind in a row, mean: more is phases of a program

struct InTurn {
  const Candidate* mark = nullptr;
  double lag = 0;
  double share = 0;
};

// A look at a few turns in the middle, to spare alternation() for those that may pass.
bool may_take_turns(const Candidate& a, const Candidate& b) {
  constexpr std::size_t kLooks = 12, kMostMissed = 4;
  const std::size_t begin = a.at.size() / 2, end = std::min(a.at.size() - 1, begin + kLooks);
  auto next = std::ranges::lower_bound(b.at, a.at[begin]);
  std::size_t missed = 0;
  for (std::size_t i = begin; i < end && missed <= kMostMissed; ++i) {
    const auto first = next;
    while (next != b.at.end() && *next < a.at[i + 1]) ++next;
    missed += next - first != 1;
  }
  return missed <= kMostMissed;
}

// Those of `pool` that take turns with `reference`.
std::vector<InTurn> taking_turns(const Candidate& reference, std::span<const Candidate* const> pool,
                                 double least_share) {
  std::vector<InTurn> found;
  const double n = static_cast<double>(reference.at.size());
  for (const Candidate* c : pool) {
    if (c == &reference) {
      found.push_back({c, 0, 1});
      continue;
    }
    if (std::abs(static_cast<double>(c->at.size()) - n) > 1 + kSameCount * n) continue;
    if (!may_take_turns(reference, *c)) continue;
    const Alternation with = alternation(reference, *c, least_share);
    if (with.share >= least_share) found.push_back({c, with.lag, with.share});
  }
  return found;
}

// Of candidates sorted by how often they occur: the one that most others occur as often as.
const Candidate* most_typical(std::span<const Candidate* const> sorted) {
  const Candidate* best = nullptr;
  std::size_t most = 0;
  for (std::size_t begin = 0, end = 0; begin < sorted.size(); ++begin) {
    const auto n = static_cast<double>(sorted[begin]->at.size());
    while (end < sorted.size() &&
           static_cast<double>(sorted[end]->at.size()) <= n + 1 + kSameCount * n) {
      ++end;
    }
    if (end - begin <= most) continue;
    most = end - begin;
    best = *std::ranges::min_element(sorted.subspan(begin, most), {}, &Candidate::run);
  }
  return best;
}

double mean_gap(const Candidate& c) {
  return static_cast<double>(c.at.back() - c.at.front()) / static_cast<double>(c.at.size() - 1);
}

// Puts the marks in the order of a repeat that begins with `first`, and leaves a choice of them.
std::vector<Mark> order_from(std::vector<InTurn> found, const Candidate* first, double gap) {
  const double start = std::ranges::find(found, first, &InTurn::mark)->lag;
  for (InTurn& t : found) t.lag = t.lag < start ? t.lag - start + gap : t.lag - start;
  std::ranges::stable_sort(found, {}, &InTurn::lag);
  std::vector<Mark> marks;
  const std::size_t n = std::min(found.size(), kMostMarks);
  for (std::size_t i = 0; i < n; ++i) {
    const InTurn& t = found[n == 1 ? 0 : i * (found.size() - 1) / (n - 1)];
    marks.push_back({t.mark->key, t.mark->run, t.lag, 0});
  }
  return marks;
}

std::vector<InTurn> surest(std::vector<InTurn> found) {
  double best = 0;
  for (const InTurn& t : found) {
    if (t.lag > 0) best = std::max(best, t.share);
  }
  std::erase_if(found, [&](const InTurn& t) { return t.share < best - kAsSure; });
  // Single launches are spoiled by losses least.
  const auto single = [](const InTurn& t) { return t.mark->run == 0; };
  if (static_cast<std::size_t>(std::ranges::count_if(found, single)) >= kLeastMarks) {
    std::erase_if(found, [&](const InTurn& t) { return !single(t); });
  }
  return found;
}

double share_at(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
}

struct Spacing {
  double median = 0, shortest = 0, spread = 0, coverage = 0;
};
Spacing spacing_of(const Candidate& c, std::size_t launches) {
  std::vector<double> gaps;
  for (std::size_t i = 0; i + 1 < c.at.size(); ++i) gaps.push_back(c.at[i + 1] - c.at[i]);
  std::ranges::sort(gaps);
  Spacing s;
  s.median = share_at(gaps, 0.5);
  s.shortest = share_at(gaps, 0.1);
  s.spread = (share_at(gaps, 0.9) - s.shortest) / s.median;
  double covered = s.median;
  for (const double gap : gaps) covered += gap <= kPause * s.median ? gap : s.median;
  s.coverage = std::min(1.0, covered / static_cast<double>(launches));
  return s;
}

// Groups of candidates that take turns. Those of the most usual numbers of occurrences come first.
std::vector<std::vector<InTurn>> groups_in_turn(std::vector<const Candidate*> pool, std::size_t run,
                                                std::size_t least_marks) {
  std::erase_if(pool, [&](const Candidate* c) {
    return c->run > run || c->at.size() < kLeastTurns || c->regular > kVeryRegular;
  });
  std::ranges::stable_sort(pool, {}, [](const Candidate* c) { return c->at.size(); });
  std::vector<std::vector<InTurn>> groups;
  std::size_t looked = 0, in_vain = 0;
  while (pool.size() >= least_marks && looked <= kMostLooks && in_vain < kMostInVain) {
    looked += pool.size();
    const Candidate* reference = most_typical(pool);
    auto found = taking_turns(*reference, pool, kSureShare);
    std::erase_if(pool, [&](const Candidate* c) {
      return std::ranges::find(found, c, &InTurn::mark) != found.end();
    });
    if (found.size() >= least_marks) {
      groups.push_back(std::move(found));
    } else if (groups.empty()) {
      ++in_vain;
    }
  }
  return groups;
}

const Candidate* first_to_occur(const std::vector<InTurn>& found) {
  return std::ranges::min_element(found, {}, [](const InTurn& t) { return t.mark->at.front(); })
      ->mark;
}

}  // namespace

std::optional<OrderedMarks> marks_in_turn(const Level& level, double least_share) {
  const Candidate& reference = *level.reference;
  if (reference.at.size() < kSafeRepeats) return std::nullopt;
  auto found = surest(taking_turns(reference, level.members, least_share));
  std::vector<std::size_t> counts;
  for (const InTurn& t : found) {
    if (t.mark->run == 0) counts.push_back(t.mark->at.size());
  }
  if (counts.size() < kLeastMarks) return std::nullopt;
  const auto [least, most] = std::ranges::minmax(counts);
  if (most > least + 1) return std::nullopt;  // lost records
  const auto offset = [&](const InTurn& t) {
    const auto at = std::ranges::find(level.members, t.mark) - level.members.begin();
    return level.offsets[static_cast<std::size_t>(at)];
  };
  const Candidate* first = std::ranges::min_element(found, {}, offset)->mark;
  return OrderedMarks{order_from(std::move(found), first, mean_gap(reference)), least, most};
}

std::vector<Level> find_turns(std::span<const Launch> launches,
                              std::span<const Candidate* const> candidates, std::size_t run) {
  std::vector<Level> levels;
  for (auto& group : groups_in_turn({candidates.begin(), candidates.end()}, run, kLeastMarks)) {
    auto found = surest(group);
    if (found.size() < kLeastMarks) continue;
    const Candidate& reference = *first_to_occur(found);
    const Spacing spacing = spacing_of(reference, launches.size());
    if (spacing.spread > kMostSpread) continue;
    Level level;
    level.reference = &reference;
    for (const InTurn& t : found) level.members.push_back(t.mark);
    level.plan.spacing = spacing.median;
    level.plan.shortest = spacing.shortest;
    level.plan.coverage = spacing.coverage;
    level.plan.repeats = reference.at.size();
    level.plan.ordered = true;
    const double gap = mean_gap(reference);
    level.plan.marks = order_from(std::move(found), &reference, gap);
    levels.push_back(std::move(level));
  }
  return levels;
}

std::optional<Level> find_blocks(std::span<const Launch> launches,
                                 std::span<const Candidate* const> candidates) {
  struct Block {
    std::uint32_t first, last;
    std::size_t kind;
  };
  std::vector<Block> blocks;
  Level level;
  level.plan.groups = 0;
  for (const auto& group : groups_in_turn({candidates.begin(), candidates.end()}, 0, 2)) {
    auto found = surest(group);
    if (found.size() < 2) continue;
    // The block begins after the longest way from one mark to the next.
    const double gap = mean_gap(*found.front().mark);
    std::ranges::sort(found, {}, &InTurn::lag);
    const InTurn* first = &found.front();
    double longest = found.front().lag + gap - found.back().lag;
    for (std::size_t i = 1; i < found.size(); ++i) {
      if (found[i].lag - found[i - 1].lag > longest) {
        longest = found[i].lag - found[i - 1].lag;
        first = &found[i];
      }
    }
    const Candidate* begin = first->mark;
    auto marks = order_from(found, begin, gap);
    const auto last_of = std::ranges::find_if(found, [&](const InTurn& t) {
      return t.mark->key == marks.back().key && t.mark->run == marks.back().run;
    });
    const std::size_t kind = level.plan.groups;
    std::size_t here = 0;
    auto end = last_of->mark->at.begin();
    for (const std::uint32_t at : begin->at) {
      while (end != last_of->mark->at.end() && *end < at) ++end;
      if (end == last_of->mark->at.end()) break;
      blocks.push_back({at - static_cast<std::uint32_t>(kRunLengths[begin->run] - 1), *end, kind});
      ++here;
    }
    if (here == 0) continue;
    for (Mark& mark : marks) mark.group = kind;
    level.plan.marks.insert(level.plan.marks.end(), marks.begin(), marks.end());
    ++level.plan.groups;
    if (level.reference == nullptr || begin->at.size() > level.reference->at.size()) {
      level.reference = begin;
    }
    for (const InTurn& t : found) level.members.push_back(t.mark);
  }
  if (level.plan.groups < 2 || blocks.size() < kLeastBlocks) return std::nullopt;
  std::ranges::sort(blocks, {}, &Block::first);
  double covered = 0;
  std::size_t rows = 1, overlaps = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    covered += blocks[i].last - blocks[i].first + 1;
    if (i == 0) continue;
    rows += blocks[i].kind != blocks[i - 1].kind;
    overlaps += blocks[i].first <= blocks[i - 1].last;
  }
  const auto n = static_cast<double>(blocks.size());
  const double coverage = covered / static_cast<double>(launches.size());
  if (coverage < kBlocksCoverage || static_cast<double>(overlaps) > kSameCount * n ||
      n > kLongestRow * static_cast<double>(rows)) {
    return std::nullopt;
  }
  level.plan.ordered = true;
  level.plan.coverage = std::min(1.0, coverage);
  level.plan.spacing = static_cast<double>(launches.size()) / n;
  level.plan.shortest = level.plan.spacing;
  level.plan.repeats = blocks.size();
  return level;
}

}  // namespace gpoeo::iteration
