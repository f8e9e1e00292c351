// SPDX-License-Identifier: Apache-2.0
#include "iteration/mark_candidates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "iteration/occurrences.h"

namespace gpoeo::iteration {
namespace {

// A mark must come back at least so often.
constexpr std::size_t kLeastRepeats = 3;
// A spacing is regular within this share of the median.
constexpr double kSpacingTolerance = 0.2;
constexpr double kTightTolerance = 0.05;  // below kSafeRepeats
// Share of the spacings that must be regular: lost records and pauses spoil some, a random stream
// reaches about 0.15.
constexpr double kRegularShare = 0.6;
constexpr double kBelievedShare = 0.75;
constexpr std::size_t kMostCandidates = std::size_t{1} << 15;

double percentile(std::vector<std::uint32_t>& values, double share) {
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(
                                        share * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

// The run as a mark, if its spacing is regular enough.
std::optional<Candidate> as_candidate(std::span<const std::uint32_t> at) {
  std::vector<std::uint32_t> gaps(at.size() - 1);
  for (std::size_t i = 0; i + 1 < at.size(); ++i) gaps[i] = at[i + 1] - at[i];
  const double median = percentile(gaps, 0.5);
  const double slack = median * (at.size() < kSafeRepeats ? kTightTolerance : kSpacingTolerance);
  std::erase_if(gaps, [&](std::uint32_t gap) { return std::abs(gap - median) > slack; });
  const double regular = static_cast<double>(gaps.size()) / static_cast<double>(at.size() - 1);
  if (regular < kRegularShare) return std::nullopt;
  Candidate c;
  c.spacing = median;
  c.shortest = percentile(gaps, 0.1);
  c.regular = regular;
  return c;
}

}  // namespace

// Of runs that occur only a few times many are regular by chance (in a stream with a loop in it the
// more so, as all spacings are multiples of the loop), so those of one count are believed only if
// most of them are regular.
bool collect_candidates(std::span<const Launch> launches, std::size_t run,
                        std::vector<Candidate>& out, std::vector<Candidate>* irregular) {
  const Occurrences occurrences(launches, run);
  const std::size_t stride = occurrences.size() / kMostCandidates + 1;
  std::array<std::size_t, kSafeRepeats> all{}, regular{};
  std::vector<Candidate> found;
  for (std::size_t i = 0; i < occurrences.size(); i += stride) {
    const auto at = occurrences.at(i);
    if (at.size() < kLeastRepeats) continue;
    auto candidate = as_candidate(at);
    if (at.size() < kSafeRepeats) {
      ++all[at.size()];
      regular[at.size()] += candidate.has_value();
    }
    if (!candidate) {
      if (irregular == nullptr || at.size() < kSafeRepeats) continue;
      irregular->push_back({.key = occurrences.key(i), .run = run, .at = {at.begin(), at.end()}});
      continue;
    }
    candidate->key = occurrences.key(i);
    candidate->run = run;
    candidate->at.assign(at.begin(), at.end());
    found.push_back(std::move(*candidate));
  }
  for (Candidate& c : found) {
    const std::size_t n = c.at.size();
    const bool believed = n >= kSafeRepeats || static_cast<double>(regular[n]) >=
                                                   kBelievedShare * static_cast<double>(all[n]);
    if (believed) out.push_back(std::move(c));
  }
  // What repeats at least thrice has at most a third as many distinct runs as launches.
  return 2 * occurrences.size() < launches.size();
}

// Longer than so many spacings is a pause.
constexpr double kPauseFrom = 1.5;

Alternation alternation(const Candidate& a, const Candidate& b, double least_share) {
  Alternation result;
  const auto may_miss =
      static_cast<std::size_t>((1 - least_share) * static_cast<double>(a.at.size() - 1));
  std::size_t once = 0, missed = 0, without_pause = 0;
  double any_lag = 0;
  auto next = std::ranges::lower_bound(b.at, a.at.front());
  for (std::size_t i = 0; i + 1 < a.at.size(); ++i) {
    const auto first = next;
    while (next != b.at.end() && *next < a.at[i + 1]) ++next;
    if (next - first != 1) {
      if (++missed > may_miss) return {};
      continue;
    }
    ++once;
    // In a pause between two repeats (a validation) the distance says nothing.
    const std::uint32_t lag = *first - a.at[i];
    any_lag += lag;
    if (a.at[i + 1] - a.at[i] > kPauseFrom * a.spacing) continue;
    ++without_pause;
    result.lag += lag;
  }
  result.share = static_cast<double>(once) / static_cast<double>(a.at.size() - 1);
  if (without_pause > 0) {
    result.lag /= static_cast<double>(without_pause);
  } else if (once > 0) {
    result.lag = any_lag / static_cast<double>(once);
  }
  return result;
}

}  // namespace gpoeo::iteration
