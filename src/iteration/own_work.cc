// SPDX-License-Identifier: Apache-2.0
#include "iteration/own_work.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace gpoeo::iteration {
namespace {

// A difference of means counts from so many standard errors on.
constexpr double kSure = 3;
// Gaps looked into to see whether they hold a loop.
constexpr std::size_t kGapsLookedInto = 4;
constexpr double kLongGap = 0.84;  // percentile
// Launches of a gap that are looked at.
constexpr std::size_t kMostLooked = std::size_t{1} << 14;
// A kind that comes so often in a gap repeats there.
constexpr std::uint32_t kLoops = 3;
constexpr double kMostly = 0.5;
// Beyond so many lengths of the shorter repeat, repeated work is no optimizer's.
constexpr double kManyLengths = 3;
// An optimizer repeats a few launches for each parameter; a batch of a validation is a good part of
// a training step.
constexpr double kPartOfInner = 0.2;

struct Gap {
  std::uint32_t from = 0, to = 0;
  bool marked = false;
  double length() const { return to - from; }
};

std::vector<Gap> gaps_between(std::span<const std::uint32_t> inner,
                              std::span<const std::uint32_t> marks) {
  std::vector<Gap> gaps;
  auto next = marks.begin();
  for (std::size_t i = 0; i + 1 < inner.size(); ++i) {
    next = std::lower_bound(next, marks.end(), inner[i]);
    gaps.push_back({inner[i], inner[i + 1], next != marks.end() && *next < inner[i + 1]});
  }
  return gaps;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Half the distance from the 16th to the 84th percentile: the deviation, outliers left out.
double spread(std::vector<double> values) {
  const auto at = [&](double share) {
    const auto nth = values.begin() +
                     static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
    std::ranges::nth_element(values, nth);
    return *nth;
  };
  return (at(0.84) - at(0.16)) / 2;
}

std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> kinds_in(
    std::span<const Launch> launches, const Gap& gap) {
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> kinds;
  const auto to = std::min<std::size_t>(gap.to, gap.from + kMostLooked);
  for (std::size_t i = gap.from; i < to; ++i) {
    kinds[launches[i].id].push_back(static_cast<std::uint32_t>(i));
  }
  return kinds;
}

// Whether the launches that `gap` has more than `usual` are a loop like those of a validation:
// repeated, and made of the kinds of the shorter repeat, or in units of a size like its.
bool holds_loop(std::span<const Launch> launches, const Gap& gap, const Gap& usual) {
  const auto here = kinds_in(launches, gap);
  const auto there = kinds_in(launches, usual);
  double extra = 0, repeated = 0, shared = 0;
  std::vector<std::pair<double, double>> units;  // distance between two of a kind, how many
  for (const auto& [id, at] : here) {
    const auto known = there.find(id);
    const std::size_t of_inner = known == there.end() ? 0 : known->second.size();
    if (at.size() <= of_inner) continue;
    const auto more = static_cast<double>(at.size() - of_inner);
    extra += more;
    if (at.size() < of_inner + kLoops) continue;
    repeated += more;
    if (of_inner > 0) shared += more;
    units.emplace_back(
        static_cast<double>(at.back() - at.front()) / static_cast<double>(at.size() - 1), more);
  }
  if (extra == 0 || repeated < kMostly * extra) return false;
  if (shared >= kMostly * extra || extra >= kManyLengths * usual.length()) return true;
  std::ranges::sort(units);
  double passed = 0;
  for (const auto& [distance, weight] : units) {
    passed += weight;
    if (passed >= repeated / 2) return distance >= kPartOfInner * usual.length();
  }
  return false;
}

// Whether those of middling length of the gaps `with` hold loops that long ones `without` do not.
bool hold_loops(std::span<const Launch> launches, std::vector<const Gap*> with,
                std::vector<const Gap*> without) {
  if (with.empty()) return false;
  std::ranges::stable_sort(with, {}, [](const Gap* gap) { return gap->length(); });
  std::ranges::stable_sort(without, {}, [](const Gap* gap) { return gap->length(); });
  const Gap& usual =
      *without[static_cast<std::size_t>(kLongGap * static_cast<double>(without.size() - 1))];
  const std::size_t looked = std::min(kGapsLookedInto, with.size());
  std::size_t loops = 0;
  for (std::size_t i = 0; i < looked; ++i) {
    loops += holds_loop(launches, *with[(with.size() - looked) / 2 + i], usual);
  }
  return 2 * loops > looked;
}

}  // namespace

OwnWork own_work(std::span<const Launch> launches, std::span<const std::uint32_t> inner,
                 std::span<const std::uint32_t> outer, std::span<const std::uint32_t> marks) {
  const std::vector<Gap> gaps = gaps_between(inner, marks);
  std::vector<double> usual, after;
  std::vector<const Gap*> with, without;
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    (gaps[i].marked ? with : without).push_back(&gaps[i]);
    if (gaps[i].marked) continue;
    (i > 0 && gaps[i - 1].marked ? after : usual).push_back(gaps[i].length());
  }
  if (without.empty()) return {.share = 1};
  if (usual.empty()) usual.swap(after);  // two in each longer one
  const double length = median(usual), deviation = spread(usual);
  // What the marked gaps of each longer repeat have more than others, together.
  std::vector<double> more;
  std::size_t marked = 0;
  auto gap = gaps.begin();
  for (std::size_t i = 0; i + 1 < outer.size(); ++i) {
    double here = 0;
    for (; gap != gaps.end() && gap->from < outer[i + 1]; ++gap) {
      if (gap->to <= outer[i] || !gap->marked) continue;
      here += gap->length() - length;
      ++marked;
    }
    more.push_back(here);
  }
  const auto n = static_cast<double>(more.size());
  const double doubt = kSure * deviation / std::sqrt(n);
  const double in_gaps = std::abs(median(more));
  const double in_next = after.empty() ? 0 : std::abs(median(after) - length);
  const double marked_each = std::max(1.0, static_cast<double>(marked) / n);
  OwnWork own;
  if (in_gaps > doubt * std::sqrt(marked_each)) own.share += in_gaps;
  if (in_next > doubt) own.share += in_next;
  own.share /= std::max(1.0, static_cast<double>(outer.back() - outer.front()) / n);
  own.is_loop = hold_loops(launches, with, without);
  return own;
}

}  // namespace gpoeo::iteration
