// SPDX-License-Identifier: Apache-2.0
#include "policy/constrained_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "policy/candidates.h"
#include "policy/evidence.h"
#include "policy/outlook.h"

namespace gpoeo::policy {
namespace {

constexpr MeasureGoal kFirstBaseline{
    .least_iterations = 8, .least = Seconds(4), .longest = Seconds(15), .precision = 0.004};
constexpr MeasureGoal kHold{
    .least_iterations = 6, .least = Seconds(10), .longest = Seconds(30), .precision = 0.0};

Decision at(Purpose purpose, const ClockSetting& setting, const MeasureGoal& goal,
            std::string why) {
  return {.purpose = purpose, .setting = setting, .goal = goal, .why = std::move(why)};
}

}  // namespace

Decision ConstrainedSearch::decide(const Problem& problem,
                                   std::span<const Observation> observations) const {
  const std::vector<Candidate> candidates = candidates_of(problem, default_sm_clock(observations));
  if (candidates.empty()) return {.why = "the driver lists nothing to choose from"};
  const EvidenceLog log = gather(candidates, observations);
  if (log.baselines == 0) {
    return at(Purpose::kBaseline, {}, kFirstBaseline, "measuring default clocks");
  }
  // No clock can be judged against iterations that are not known to half of what is at stake.
  const double known_to = options_.baseline_share * std::log1p(problem.max_slowdown);
  if (const double error = log.baseline_error; error > known_to) {
    return at(Purpose::kLeave, {}, kHold,
              fmt::format("iterations at default clocks are known to {:.1f} % only", 100 * error));
  }
  const Outlook outlook(problem, options_, candidates, log);

  // The setting that was held before the newest baseline is still the one to beat.
  std::size_t last_set = 0, windows = 0;
  for (const Evidence& e : log.blocks) {
    if (e.candidate == 0) continue;
    if (e.candidate != last_set) windows = 0;
    last_set = e.candidate;
    windows += e.span_s > 8 ? 2 : 1;
  }
  const std::size_t held = windows >= 2 ? last_set : 0;
  const std::size_t hold = outlook.best_to_hold(held);

  // What is claimed at the end rests on default clocks, and a job changes: they are measured again
  // now and then in any case.
  const double now_s = log.blocks.back().at_s;
  const bool cold = log.last_baseline_s < options_.card_is_warm_s;
  const bool old = now_s - log.last_baseline_s >
                   std::max(options_.warm_baseline_s, options_.baseline_age * log.measured_s);
  if (hold != 0 && (old || (cold && now_s > options_.warm_baseline_s))) {
    return at(Purpose::kBaseline, {}, outlook.goal(0), "fresh baseline");
  }
  const Outlook::Measurement next = outlook.best_measurement(hold);
  if (next.profit > 0) {
    if (next.candidate == 0) {
      return at(Purpose::kBaseline, {}, outlook.goal(0, next.length),
                "default clocks decide what may be held");
    }
    return at(Purpose::kProbe, candidates[next.candidate].setting,
              outlook.goal(next.candidate, next.length), outlook.expectation(next.candidate));
  }
  if (hold == 0 && log.probes == 0) {
    if (const std::size_t k = outlook.check(); k != 0) {
      return at(Purpose::kProbe, candidates[k].setting, outlook.goal(k), outlook.expectation(k));
    }
  }
  if (hold != 0) {
    return at(Purpose::kHold, candidates[hold].setting, kHold, outlook.expectation(hold));
  }
  return at(Purpose::kLeave, {}, kHold,
            fmt::format("no setting saves {:.0f} % within the limit", 100 * options_.least_saving));
}

}  // namespace gpoeo::policy
