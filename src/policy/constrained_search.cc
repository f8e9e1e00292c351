// SPDX-License-Identifier: Apache-2.0
#include "policy/constrained_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "policy/candidates.h"
#include "policy/evidence.h"
#include "policy/objective.h"
#include "policy/response_belief.h"

namespace gpoeo::policy {
namespace {

constexpr MeasureGoal kFirstBaseline{
    .least_iterations = 8, .least = Seconds(4), .longest = Seconds(15), .precision = 0.004};
constexpr MeasureGoal kFreshBaseline{
    .least_iterations = 6, .least = Seconds(3), .longest = Seconds(8), .precision = 0.005};
constexpr MeasureGoal kProbe{
    .least_iterations = 6, .least = Seconds(3), .longest = Seconds(12), .precision = 0.004};
// Into the dark: a setting that may turn out far too slow is looked at only briefly.
constexpr MeasureGoal kGlance{
    .least_iterations = 3, .least = Seconds(1.5), .longest = Seconds(5), .precision = 0.02};
constexpr MeasureGoal kHold{
    .least_iterations = 6, .least = Seconds(10), .longest = Seconds(30), .precision = 0.0};
// A setting whose slow-down is known no better than this is only glanced at.
constexpr double kDarkError = 0.10;

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }
double normal_pdf(double z) { return std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi); }

// E[max(0, x)] for x ~ N(mean, sd).
double expected_positive(double mean, double sd) {
  if (sd <= 0) return std::max(0.0, mean);
  return mean * normal_cdf(mean / sd) + sd * normal_pdf(mean / sd);
}

// One look at the evidence; built per decision.
class Outlook {
 public:
  Outlook(const Problem& problem, const ConstrainedSearchOptions& options,
          const std::vector<Candidate>& candidates, const EvidenceLog& log)
      : options_(options),
        candidates_(candidates),
        log_(log),
        limit_(std::log1p(problem.max_slowdown)),
        beliefs_(problem, candidates, log.blocks) {
    for (std::size_t k = 0; k < beliefs_.size(); ++k) {
      worths_.push_back(worth(problem, beliefs_[k]));
    }
  }

  bool within(std::size_t k, double sigmas) const {
    return k == 0 || beliefs_[k].time + sigmas * beliefs_[k].time_error <= limit_;
  }

  // What would be held now; 0 = default clocks. A setting held already is left only for a gain.
  std::size_t best_to_hold(std::size_t held_now) const {
    std::size_t best = 0;
    double least = std::log1p(-options_.least_saving);
    const double stay = held_now != 0 && within(held_now, options_.stay_sigmas)
                            ? worths_[held_now].value - options_.hysteresis
                            : 0;
    if (stay < least) {
      least = stay;
      best = held_now;
    }
    for (std::size_t k = 1; k < candidates_.size(); ++k) {
      if (!within(k, options_.hold_sigmas) || worths_[k].value >= least) continue;
      least = worths_[k].value;
      best = k;
    }
    return best;
  }

  struct Probe {
    std::size_t candidate = 0;
    double profit = 0;  // expected, in seconds at default clocks' energy
  };
  Probe best_probe(std::size_t hold) const {
    Probe best;
    const double horizon_s =
        std::clamp(log_.measured_s, options_.least_horizon_s, options_.most_horizon_s);
    for (std::size_t k = 1; k < candidates_.size(); ++k) {
      if (k == hold || log_.windows_at[k] >= options_.most_looks) continue;
      const double profit = horizon_s * knowledge_gain(k, hold) - probe_cost_s(k, hold);
      if (profit > best.profit) best = {k, profit};
    }
    return best;
  }

  // Whether the choice hangs on how well default clocks are known.
  bool hangs_on_baseline(std::size_t hold) const {
    for (std::size_t k = 1; k < candidates_.size(); ++k) {
      const bool matters =
          k == hold || worths_[k].value < worths_[hold].value - options_.hysteresis;
      if (matters && std::abs(beliefs_[k].time - limit_) < 2.5 * beliefs_[k].time_error) {
        return true;
      }
    }
    return false;
  }

  const Belief& belief(std::size_t k) const { return beliefs_[k]; }
  const Worth& worth_of(std::size_t k) const { return worths_[k]; }

  std::string expectation(std::size_t k) const {
    return fmt::format("{:.1f} % less energy at {:+.1f}+-{:.1f} % time expected",
                       100 * (1 - std::exp(beliefs_[k].time + beliefs_[k].power)),
                       100 * std::expm1(beliefs_[k].time), 100 * beliefs_[k].time_error);
  }

 private:
  // How much better the held setting is expected to be, as a share of energy, once `k` was
  // measured.
  double knowledge_gain(std::size_t k, std::size_t hold) const {
    const Belief& b = beliefs_[k];
    const double noise = options_.probe_error;
    const double variance = b.time_error * b.time_error;
    const double left = variance * noise * noise / (variance + noise * noise);
    const double moved = std::sqrt(std::max(0.0, variance - left));
    const double spare = limit_ - options_.hold_sigmas * std::sqrt(left) - b.time;
    const double admitted = moved > 0 ? normal_cdf(spare / moved) : (spare >= 0 ? 1.0 : 0.0);
    const double contrast = beliefs_.contrast_error(k, hold, 1);
    const double learned = contrast * contrast / std::hypot(contrast, options_.probe_energy_error);
    const double gain = expected_positive(worths_[hold].value - worths_[k].value, learned);
    return admitted * gain;
  }

  // In seconds at default clocks' energy: the probe's own waste, and too slow a clock is waste too.
  double probe_cost_s(std::size_t k, std::size_t hold) const {
    const double worse = expected_positive(worths_[k].value - worths_[hold].value,
                                           beliefs_.contrast_error(k, hold, 1));
    const double slow = expected_positive(beliefs_[k].time - limit_, beliefs_[k].time_error);
    const double seconds =
        beliefs_[k].time_error > kDarkError ? kGlance.longest.value() : options_.probe_s;
    return seconds * (worse + slow) + options_.write_cost_s * 0.2;
  }

  const ConstrainedSearchOptions& options_;
  const std::vector<Candidate>& candidates_;
  const EvidenceLog& log_;
  double limit_;
  ResponseBelief beliefs_;
  std::vector<Worth> worths_;
};

Decision at(Purpose purpose, const ClockSetting& setting, const MeasureGoal& goal,
            std::string why) {
  return {.purpose = purpose, .setting = setting, .goal = goal, .why = std::move(why)};
}

}  // namespace

Decision ConstrainedSearch::decide(const Problem& problem,
                                   std::span<const Observation> observations) const {
  const std::vector<Candidate> candidates = candidates_of(problem);
  if (candidates.empty()) return {.why = "the driver lists nothing to choose from"};
  const EvidenceLog log = gather(candidates, observations);
  if (log.baselines == 0) {
    return at(Purpose::kBaseline, {}, kFirstBaseline, "measuring default clocks");
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

  const double age_s = log.blocks.back().at_s - log.last_baseline_s;
  const double due_s =
      std::min(options_.longest_baseline_s,
               options_.first_baseline_after_s *
                   std::pow(options_.baseline_growth, static_cast<double>(log.baselines) - 1));
  if (age_s > due_s && (outlook.hangs_on_baseline(hold) || age_s > options_.longest_baseline_s)) {
    return at(Purpose::kBaseline, {}, kFreshBaseline, "fresh baseline");
  }
  if (log.probes < options_.most_probes) {
    const auto probe = outlook.best_probe(hold);
    if (probe.candidate != 0) {
      const bool dark = outlook.belief(probe.candidate).time_error > kDarkError;
      return at(Purpose::kProbe, candidates[probe.candidate].setting, dark ? kGlance : kProbe,
                outlook.expectation(probe.candidate));
    }
  }
  if (hold != 0) {
    return at(Purpose::kHold, candidates[hold].setting, kHold, outlook.expectation(hold));
  }
  return at(Purpose::kLeave, {}, kHold,
            fmt::format("no setting saves {:.0f} % within the limit", 100 * options_.least_saving));
}

}  // namespace gpoeo::policy
