// SPDX-License-Identifier: Apache-2.0
#include "iteration/launch_marks.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "iteration/launch_tracker.h"
#include "iteration/level_choice.h"
#include "iteration/mark_candidates.h"
#include "iteration/turns.h"

namespace gpoeo::iteration {
namespace {

// A level needs two marks, and so many agreeing spacings in all: one mark in a random stream of
// many ids is regular by chance soon, several alternating ones are not. Below kSafeRepeats only
// marks of (nearly) the same spacing are evidence.
constexpr std::size_t kLeastMarks = 2;
constexpr std::size_t kLeastEvidence = 12;
constexpr double kEqualSpacing = 0.005;
constexpr double kLongSpacing = 1000;
// Share of the spacings in which two marks of a level alternate.
constexpr double kAlternatingShare = 0.85;
// Marks of one level have spacings that differ by less than this factor.
constexpr double kSameSpacing = 1.1;
constexpr std::size_t kMarksPerLevel = 16;
constexpr std::size_t kLeastChosen = 6;
// Levels made of the candidates of one spacing before the rest, which covers little, is given up.
constexpr int kMostTries = 32;
// Marks at least so regular, in relation to the reference, are as good.
constexpr double kAsRegular = 0.95;
// A level may be counted by the order of its marks when so many of them take turns so surely.
constexpr double kSureTurns = 0.995;
constexpr std::size_t kLeastInOrder = 4;
// So many marks must have come before the reference, and this share of a repeat before they came
// again, to be believed to be of its repeat and not of a start-up.
constexpr std::size_t kLeastBefore = 2;
constexpr double kLeastGap = 0.8;
constexpr std::size_t kMostLevels = 8;
constexpr double kReportedCoverage = 0.1;

// The last occurrence of the reference that is looked at for the kinds of launches of a repeat.
std::uint32_t end_of_sample(const Candidate& reference) {
  constexpr std::size_t kRepeats = 2;
  constexpr std::uint32_t kLaunches = 1 << 16;
  const auto enough = std::ranges::lower_bound(reference.at, reference.at.front() + kLaunches);
  const auto by_launches = static_cast<std::size_t>(enough - reference.at.begin());
  return reference.at[std::min(reference.at.size() - 1, std::max(kRepeats, by_launches))];
}

// Where the repeat begins that holds `first`: back from there as long as the launches are of the
// kinds that occur later too. A program's own start-up uses others. So does each repeat of a
// program whose shapes change all the time: as many foreign launches as in a later repeat are no
// sign.
std::size_t walk_back(std::span<const Launch> launches, const Candidate& reference,
                      std::size_t first) {
  constexpr double kForeignDecay = 1.0 / 16, kMostForeign = 0.3;
  struct Seen {
    std::uint32_t first, last, times;
  };
  std::unordered_map<std::uint32_t, Seen> known;
  const std::uint32_t end = end_of_sample(reference);
  for (std::uint32_t i = reference.at.front(); i <= end; ++i) {
    const auto [at, fresh] = known.try_emplace(launches[i].id, Seen{i, i, 0});
    at->second.last = i;
    ++at->second.times;
  }
  double of_one_repeat = 0;
  for (const auto& [id, seen] : known) {
    if (seen.last - seen.first < reference.spacing) of_one_repeat += seen.times;
  }
  const double usual = of_one_repeat / (end - reference.at.front() + 1);
  std::size_t origin = first;
  double foreign = 0;
  for (std::size_t i = origin; i-- > 0;) {
    const bool is_known = known.contains(launches[i].id);
    foreign += kForeignDecay * ((is_known ? 0.0 : 1.0) - foreign);
    if (foreign > usual + kMostForeign) break;
    if (is_known || usual > kMostForeign) origin = i;
  }
  return origin;
}

// One mark of each part of the repeat, the shortest run first, and the one nearest the end. A run
// of several launches that straddles two repeats may by chance (lost records) seem to end just
// before the end, so such a mark has to keep clear of it.
std::vector<Mark> choose_marks(std::vector<Mark> all, const LevelPlan& plan) {
  std::ranges::stable_sort(all, {}, &Mark::run);
  const auto may_end = [&](const Mark& m) { return m.run == 0 || m.offset <= plan.shortest - 1; };
  const Mark* last = nullptr;
  for (const Mark& mark : all) {
    if (may_end(mark) && (last == nullptr || mark.offset > last->offset)) last = &mark;
  }
  if (last == nullptr) last = &all.front();
  std::vector<Mark> chosen = {*last};
  std::vector<Mark> spare;
  std::array<bool, kMarksPerLevel> taken{};
  for (const Mark& mark : all) {
    const auto part = std::min(
        kMarksPerLevel - 1, static_cast<std::size_t>(mark.offset / plan.spacing * kMarksPerLevel));
    if (mark.key == last->key || mark.offset > last->offset) continue;
    (taken[part] ? spare : chosen).push_back(mark);
    taken[part] = true;
  }
  // Marks crowded in one part (an optimizer) still make up for each other's losses.
  const std::size_t missing = kLeastChosen - std::min(kLeastChosen, chosen.size());
  spare.resize(std::min(spare.size(), missing));
  chosen.insert(chosen.end(), spare.begin(), spare.end());
  std::ranges::stable_sort(chosen, {}, &Mark::offset);
  // The end mark stays last among equals.
  const auto at = std::ranges::find(chosen, last->key, &Mark::key);
  std::rotate(at, at + 1, chosen.end());
  return chosen;
}

// The first occurrence from `from` on that is no stray: a lost record, or a start-up of the same
// kinds of launches, can make a run of launches occur too soon before the next one.
std::size_t first_occurrence(const Candidate& mark, double spacing, std::size_t from = 0) {
  auto at = std::ranges::lower_bound(mark.at, from);
  for (; at != mark.at.end() && at + 1 != mark.at.end(); ++at) {
    if (*(at + 1) - *at >= kLeastGap * spacing) return *at;
  }
  return mark.at.front();
}

// Where in the repeat a mark first lies. One launch that first comes just after the median repeat
// has passed is at the end of a first repeat that lost fewer records than most.
double first_offset(const LevelPlan& plan, const Candidate& mark) {
  // In a first repeat with launches of its own (see find_origin) it may lie before the origin.
  const std::size_t at = first_occurrence(mark, plan.spacing, plan.origin);
  const double first = static_cast<double>(at) - static_cast<double>(plan.origin);
  const double scatter = 3 * (plan.spacing - plan.shortest);
  const bool never_before = at == mark.at.front();
  if (mark.run == 0 && never_before && first >= plan.spacing && first <= plan.spacing + scatter) {
    return plan.spacing - 1;
  }
  return std::fmod(first, plan.spacing);
}

// Where in the repeat a mark lies that follows the reference by `lag`. The mean of the lag scatters
// around the border of two repeats; the first occurrence tells on which side the mark belongs,
// unless it lies behind `inserted` launches that only the first repeat has.
double offset_in_repeat(const LevelPlan& plan, const Candidate& mark, double reference_offset,
                        double lag, double inserted) {
  const double offset = std::fmod(reference_offset + lag, plan.spacing);
  const double of_first = first_offset(plan, mark);
  const double behind =
      std::fmod(of_first + plan.spacing - std::fmod(inserted, plan.spacing), plan.spacing);
  if (inserted > 0 && std::abs(offset - behind) <= plan.spacing / 2) return offset;
  if (offset - of_first > plan.spacing / 2) return 0;
  if (of_first - offset > plan.spacing / 2) return plan.spacing - 1;
  return offset;
}

// The best candidate of a pool and those that alternate with it.
struct Group {
  const Candidate* reference = nullptr;
  struct Member {
    const Candidate* mark = nullptr;
    double lag = 0;  // launches after the reference, mean
  };
  std::vector<Member> members;
  std::size_t agreeing = 0;  // members that count as evidence
};

Group take_group(std::vector<const Candidate*>& pool) {
  const auto better = [](const Candidate* a, const Candidate* b) {
    // Squared, so that launches that a validation between the repeats has too do not win by those.
    const double x = a->regular * a->regular * static_cast<double>(a->at.size());
    const double y = b->regular * b->regular * static_cast<double>(b->at.size());
    return x != y ? x < y : a->run > b->run;
  };
  Group group;
  group.reference = *std::ranges::max_element(pool, better);
  std::erase_if(pool, [&](const Candidate* c) {
    const Alternation with = alternation(*group.reference, *c, kAlternatingShare);
    if (c != group.reference && with.share < kAlternatingShare) return false;
    const double off = std::abs(c->spacing / group.reference->spacing - 1);
    const bool equal = group.reference->at.size() >= kSafeRepeats || off <= kEqualSpacing;
    // Long spacings that agree to the launch, every time, are hardly chance.
    const bool exact = c->regular == 1 && off == 0 && c->spacing >= kLongSpacing;
    group.agreeing += (equal ? 1 : 0) + (exact ? 1 : 0);
    group.members.push_back({c, with.lag});
    return true;
  });
  return group;
}

// Where the first repeat begins. The reference may lie behind launches that only the first repeat
// has (an optimizer makes its state in the first step): then the repeat is entered from the
// earliest of the marks, and its place is as if those launches were not there.
std::size_t find_origin(std::span<const Launch> launches, const Group& group) {
  const Candidate& reference = *group.reference;
  const std::size_t first = first_occurrence(reference, reference.spacing);
  const Group::Member* earliest = nullptr;
  std::size_t entry = 0, before = 0;
  for (const Group::Member& member : group.members) {
    const auto& at = member.mark->at;
    const std::size_t its_first = first_occurrence(*member.mark, reference.spacing);
    const auto next = std::ranges::upper_bound(at, its_first);
    if (its_first >= first || next == at.end() || *next <= first) continue;
    ++before;
    if (earliest != nullptr && its_first >= entry) continue;
    earliest = &member;
    entry = its_first;
  }
  if (before < kLeastBefore) return walk_back(launches, reference, first);
  const double offset = static_cast<double>(entry - walk_back(launches, reference, entry));
  // From the earliest mark to the reference, in repeats that have no launches of their own.
  const double lag = std::max(0.0, reference.spacing - earliest->lag);
  const auto reference_offset = static_cast<std::size_t>(std::llround(offset + lag));
  return first - std::min(first, reference_offset);
}

LevelPlan outline(std::span<const Launch> launches, const Candidate& reference) {
  LevelPlan plan;
  plan.spacing = reference.spacing;
  plan.shortest = reference.shortest;
  plan.repeats = reference.at.size();
  const double regular = reference.regular * static_cast<double>(reference.at.size() - 1);
  plan.coverage =
      std::min(1.0, (regular + 1) * reference.spacing / static_cast<double>(launches.size()));
  return plan;
}

// Marks of one level that swap places (interleaved streams) too often for kAlternatingShare found a
// second level of their own; it says nothing new.
std::vector<Level>::iterator find_known(std::vector<Level>& levels, const LevelPlan& plan) {
  const auto near = [](double a, double b) { return std::abs(a - b) <= 0.05 * std::max(a, b); };
  return std::ranges::find_if(levels, [&](const Level& l) {
    return near(l.plan.spacing, plan.spacing) &&
           near(static_cast<double>(l.plan.repeats), static_cast<double>(plan.repeats));
  });
}

// What a tracker counts in the learned piece, from the occurrences of its marks.
std::uint64_t count_with(const LevelPlan& plan, std::span<const Candidate* const> members,
                         std::size_t launches) {
  std::vector<std::pair<std::uint32_t, std::size_t>> occurrences;
  for (std::size_t i = 0; i < plan.marks.size(); ++i) {
    const auto member = std::ranges::find_if(members, [&](const Candidate* c) {
      return c->key == plan.marks[i].key && c->run == plan.marks[i].run;
    });
    for (const std::uint32_t at : (*member)->at) occurrences.emplace_back(at, i);
  }
  std::ranges::sort(occurrences);
  LaunchTracker tracker(plan, 0, 2);
  for (const auto& [at, mark] : occurrences) {
    if (at > tracker.deadline()) tracker.on_deadline(0);
    tracker.on_mark(mark, at, 0);
  }
  if (launches > tracker.deadline()) tracker.on_deadline(0);
  tracker.on_stream_end(launches - 1, 0);
  return tracker.completed();
}

// Where distances vary, or pauses lie between, the order of the marks may count better: what most
// marks agree on is how often the repeat occurred.
void count_by_order_if_better(Level& level, std::size_t launches) {
  if (level.plan.ordered) return;
  auto found = marks_in_turn(level, kSureTurns);
  if (!found || found->marks.size() < kLeastInOrder) return;
  LevelPlan ordered = level.plan;
  ordered.marks = std::move(found->marks);
  ordered.ordered = true;
  const auto off = [&](const LevelPlan& plan) {
    const std::uint64_t n = count_with(plan, level.members, launches);
    return n < found->least ? found->least - n : n > found->most ? n - found->most : 0;
  };
  if (off(ordered) < off(level.plan)) level.plan = std::move(ordered);
}

// The level of a group, unless it is chance, covers little or is known.
std::optional<Level> make_level(std::span<const Launch> launches, const Group& group,
                                std::vector<Level>& levels) {
  const Candidate& reference = *group.reference;
  LevelPlan plan = outline(launches, reference);
  const bool enough =
      group.members.size() >= kLeastMarks && group.agreeing * (plan.repeats - 2) >= kLeastEvidence;
  if (!enough || plan.coverage < kReportedCoverage || find_known(levels, plan) != levels.end()) {
    return std::nullopt;
  }
  plan.origin = find_origin(launches, group);
  const double reference_offset = first_offset(plan, reference);
  const double first_gap = reference.at[1] - reference.at[0];
  const double inserted =
      std::max(0.0, first_gap - plan.spacing - 3 * (plan.spacing - plan.shortest));
  // Marks that also occur between the repeats mislead, and are used only for want of others.
  const double least_regular = kAsRegular * reference.regular;
  const auto clean = std::ranges::count_if(group.members, [&](const Group::Member& member) {
    return member.mark->regular >= least_regular;
  });
  const bool clean_ones = static_cast<std::size_t>(clean) >= kLeastChosen;
  Level level;
  level.reference = &reference;
  std::vector<Mark> marks;
  for (const Group::Member& member : group.members) {
    const double offset =
        offset_in_repeat(plan, *member.mark, reference_offset, member.lag, inserted);
    level.members.push_back(member.mark);
    level.offsets.push_back(offset);
    if (clean_ones && member.mark->regular < least_regular) continue;
    marks.push_back({member.mark->key, member.mark->run, offset});
  }
  plan.marks = choose_marks(std::move(marks), plan);
  level.plan = std::move(plan);
  return level;
}

std::vector<Level> make_levels(std::span<const Launch> launches,
                               std::vector<Candidate>& candidates) {
  std::ranges::sort(candidates, {}, &Candidate::spacing);
  std::vector<Level> levels;
  for (std::size_t begin = 0; begin < candidates.size();) {
    std::size_t end = begin + 1;
    while (end < candidates.size() &&
           candidates[end].spacing <= candidates[begin].spacing * kSameSpacing) {
      ++end;
    }
    std::vector<const Candidate*> pool;
    for (std::size_t i = begin; i < end; ++i) pool.push_back(&candidates[i]);
    // Loops of equal length that follow each other (training, validation) part here.
    for (int tries = 0; tries < kMostTries && !pool.empty(); ++tries) {
      auto level = make_level(launches, take_group(pool), levels);
      if (level) levels.push_back(std::move(*level));
    }
    begin = end;
  }
  return levels;
}

bool is_firm(const LevelPlan& plan) {
  return plan.coverage >= kFullCoverage && plan.marks.size() >= kLeastChosen;
}

void keep_the_widest(std::vector<Level>& levels) {
  while (levels.size() > kMostLevels) {
    levels.erase(
        std::ranges::min_element(levels, {}, [](const Level& l) { return l.plan.coverage; }));
  }
}

void sort_by_spacing(std::vector<Level>& levels) {
  std::ranges::stable_sort(levels, {}, [](const Level& l) { return l.plan.spacing; });
}

// A level that is known by distance is replaced when it accounts for more by order.
void add_turns(std::span<const Launch> launches, std::span<const Candidate* const> candidates,
               std::size_t run, std::vector<Level>& levels) {
  for (Level& level : find_turns(launches, candidates, run)) {
    const auto known = find_known(levels, level.plan);
    if (known == levels.end()) {
      levels.push_back(std::move(level));
    } else if (known->plan.coverage < kFullCoverage && level.plan.coverage > known->plan.coverage) {
      *known = std::move(level);
    }
  }
  sort_by_spacing(levels);
}

}  // namespace

LaunchStructure learn_structure(std::span<const Launch> launches) {
  LaunchStructure structure;
  std::vector<Candidate> candidates, irregular;
  for (std::size_t run = 0; run < kRunLengths.size(); ++run) {
    const bool longer_may_help =
        collect_candidates(launches, run, candidates, run <= 1 ? &irregular : nullptr);
    // Pairs tell where one loop hands over to another, so they are always worth it; longer runs
    // only when shorter ones leave the stream unexplained or marked by a few launches only.
    if (run == 0 && longer_may_help) continue;
    auto levels = make_levels(launches, candidates);
    keep_the_widest(levels);
    sort_by_spacing(levels);
    std::vector<const Candidate*> all;
    for (const auto* some : {&candidates, &irregular}) {
      for (const Candidate& c : *some) all.push_back(&c);
    }
    add_turns(launches, all, 0, levels);
    structure.counted = choose_counted(launches, levels);
    const auto accounted_for = [&] {
      return structure.counted && levels[*structure.counted].plan.coverage >= kFullCoverage;
    };
    if (!accounted_for()) {
      add_turns(launches, all, 1, levels);
      structure.counted = choose_counted(launches, levels);
    }
    if (!structure.counted) {
      if (auto blocks = find_blocks(launches, all)) {
        structure.counted = levels.size();
        levels.push_back(std::move(*blocks));
      }
    }
    if (structure.counted) count_by_order_if_better(levels[*structure.counted], launches.size());
    structure.levels.clear();
    const bool explained = accounted_for() && is_firm(levels[*structure.counted].plan);
    for (Level& level : levels) structure.levels.push_back(std::move(level.plan));
    if (explained || !longer_may_help) break;
  }
  return structure;
}

}  // namespace gpoeo::iteration
