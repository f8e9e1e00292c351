// SPDX-License-Identifier: Apache-2.0
#include "telemetry/counter_average.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

namespace gpoeo::telemetry {
namespace {

// Two readings belong together when the gap between them is no longer than this.
constexpr Duration kTogether = std::chrono::milliseconds(20);
// How many beginnings and ends are tried: more than an iteration's worth changes nothing.
constexpr std::size_t kMostTries = 32;
// A longer window is worth more than what is gained below this.
constexpr double kWholeEnough = 0.003;
// So many equal readings are no coincidence.
constexpr std::size_t kStuckReadings = 4;

struct Stretch {
  Instant from, to;
  Activity activity;
};

Activity only_plausible(const Activity& raw) {
  Activity kept;
  for (const ActivityWord& word : kActivityWords) {
    const auto& value = raw.*word.field;
    if (value && plausible(word, *value)) {
      kept.*word.field = word.share ? std::min(*value, 1.0) : *value;
    }
  }
  return kept;
}

// Consecutive readings inside the iterations, the newest run of them.
std::vector<Stretch> stretches_inside(const TimeRing<CountersPoint>& readings, Instant begin,
                                      Instant end) {
  std::vector<Stretch> run;
  for (std::size_t i = readings.first_after(begin); i < readings.size(); ++i) {
    const CountersPoint& point = readings[i];
    const Instant from = point.time - to_duration(point.counters.window);
    if (from < begin || from >= point.time) continue;
    if (point.time > end) break;
    if (!run.empty() && from - run.back().to > kTogether) run.clear();
    run.push_back({from, point.time, only_plausible(point.counters)});
  }
  return run;
}

// Iterations done at `t`, counted from the first end; linear between two ends.
double iterations_at(std::span<const Instant> ends, Instant t) {
  const auto next = std::ranges::upper_bound(ends, t);
  if (next == ends.begin()) return 0;
  if (next == ends.end()) return static_cast<double>(ends.size() - 1);
  const Instant before = *std::prev(next);
  return static_cast<double>(next - ends.begin() - 1) +
         to_seconds(t - before) / to_seconds(*next - before);
}

bool stuck(const std::vector<Stretch>& run) {
  if (run.size() < kStuckReadings) return false;
  const Activity& first = run.front().activity;
  if (!std::ranges::all_of(run, [&](const Stretch& s) { return s.activity == first; })) {
    return false;
  }
  return std::ranges::any_of(kActivityWords, [&](const ActivityWord& word) {
    const auto& value = first.*word.field;
    return word.share && value && *value > 0 && *value < 1;
  });
}

Activity mean(std::span<const Stretch> run) {
  Activity result;
  for (const ActivityWord& word : kActivityWords) {
    double sum = 0, seconds = 0;
    for (const Stretch& s : run) {
      const auto& value = s.activity.*word.field;
      if (!value) continue;
      const double span = to_seconds(s.to - s.from).value();
      sum += *value * span;
      seconds += span;
    }
    if (seconds > 0) result.*word.field = sum / seconds;
  }
  return result;
}

}  // namespace

Result<CounterAverage> average_counters(const TimeRing<CountersPoint>& readings,
                                        std::span<const Instant> ends) {
  GPOEO_CHECK(ends.size() >= 2);
  const auto run = stretches_inside(readings, ends.front(), ends.back());
  if (run.empty()) {
    return make_error(ErrorKind::kNotFound,
                      fmt::format("no counter reading lies inside {} iterations of {:.3f} s in all",
                                  ends.size() - 1, to_seconds(ends.back() - ends.front()).value()));
  }
  if (stuck(run)) {
    return make_error(
        ErrorKind::kIo,
        fmt::format("{} counter readings are exactly equal: the counters do not move", run.size()));
  }
  std::size_t best_first = 0, best_last = run.size() - 1;
  double least = 2;
  const std::size_t tries = std::min(kMostTries, (run.size() + 1) / 2);
  for (std::size_t skipped = 0; skipped < 2 * tries - 1 && least > kWholeEnough; ++skipped) {
    for (std::size_t first = 0; first <= std::min(skipped, tries - 1); ++first) {
      const std::size_t behind = skipped - first;
      if (behind >= tries || first + behind >= run.size()) continue;
      const std::size_t last = run.size() - 1 - behind;
      const double n = iterations_at(ends, run[last].to) - iterations_at(ends, run[first].from);
      // Below half an iteration nothing is whole.
      const double remainder = n < 0.5 ? 1 : std::abs(n - std::round(n)) / n;
      if (remainder >= least) continue;  // longer windows come first
      least = remainder;
      best_first = first;
      best_last = last;
    }
  }
  const auto chosen = std::span(run).subspan(best_first, best_last - best_first + 1);
  CounterAverage result{.activity = mean(chosen),
                        .from = chosen.front().from,
                        .to = chosen.back().to,
                        .iterations = iterations_at(ends, chosen.back().to) -
                                      iterations_at(ends, chosen.front().from),
                        .remainder = least,
                        .readings = chosen.size()};
  if (result.activity == Activity{}) {
    return make_error(ErrorKind::kNotFound,
                      fmt::format("{} counter readings hold no plausible value", chosen.size()));
  }
  return result;
}

}  // namespace gpoeo::telemetry
