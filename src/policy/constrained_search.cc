// SPDX-License-Identifier: Apache-2.0
#include "policy/constrained_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

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
        time_weight_(time_weight(problem.objective)),
        beliefs_(problem, candidates, log.blocks) {
    for (std::size_t k = 0; k < beliefs_.size(); ++k) {
      worths_.push_back(worth(problem, beliefs_[k]));
    }
  }

  // Within the limit in expectation, with `sigmas` to spare, and beyond it by more than the
  // tolerance with little chance only.
  bool within(std::size_t k, double sigmas) const {
    const Belief& b = beliefs_[k];
    return k == 0 || (b.time + sigmas * b.time_error <= limit_ &&
                      b.time + options_.tail_sigmas * b.time_error <= limit_ + options_.tolerance);
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
    double gain = 0;    // expected, as a share of energy
  };
  Probe best_probe(std::size_t hold) const {
    Probe best;
    const double allowance = allowance_s();
    for (std::size_t k = 1; k < candidates_.size(); ++k) {
      if (k == hold || !may_look(k) || !reachable(k)) continue;
      if (!promising(k) || downside_s(k) > allowance) continue;
      const double gain = knowledge_gain(k, hold);
      const double profit = horizon_s() * gain - probe_cost_s(k, hold);
      if (profit > best.profit) best = {k, profit, gain};
    }
    return best;
  }

  // Where nothing promises anything, before default clocks are left alone for good: the lowest
  // setting believed to be within the limit, or else the nearest to default. Whoever says that
  // there is nothing to gain must have looked once.
  std::size_t check() const {
    const double allowance = allowance_s();
    std::size_t lowest = 0;
    for (std::size_t k = 1; k < candidates_.size() && candidates_[k].line == 0; ++k) {
      if (downside_s(k) > allowance) break;
      if (lowest != 0 && !within(k, 0)) break;
      lowest = k;
    }
    return lowest;
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

  // What one more baseline promises, as best_probe(): it moves what is believed of every setting,
  // and may admit one that is better than what is held.
  double baseline_profit(std::size_t hold) const {
    const double n = static_cast<double>(log_.baselines);
    // The mean of n baselines errs by s / sqrt(n); one more moves it by this much.
    const double moved = options_.baseline_error / std::sqrt(n * (n + 1));
    double most = 0;
    for (std::size_t k = 1; k < candidates_.size(); ++k) {
      if (log_.looks[k].windows == 0 || k == hold) continue;
      const double gain = worths_[hold].value - worths_[k].value;
      if (gain > 0) most = std::max(most, gain * admission(k, moved));
    }
    return horizon_s() * most + options_.baseline_s * worths_[hold].value -
           2 * options_.write_cost_s * 0.2;
  }

  const Belief& belief(std::size_t k) const { return beliefs_[k]; }
  const Worth& worth_of(std::size_t k) const { return worths_[k]; }

  std::string expectation(std::size_t k) const {
    return fmt::format("{:.1f} % less energy at {:+.1f}+-{:.1f} % time expected",
                       100 * (1 - std::exp(beliefs_[k].time + beliefs_[k].power)),
                       100 * std::expm1(beliefs_[k].time), 100 * beliefs_[k].time_error);
  }

 private:
  // How far one may go with what was seen. Along a line: not much below the lowest level looked at.
  // On another memory clock: first at an SM clock that was found good, so that one thing is changed
  // at a time, and only when nothing speaks against the memory clock above it.
  bool reachable(std::size_t k) const {
    const Candidate& c = candidates_[k];
    const auto lowest = lowest_look(c.line);
    if (c.line == 0) return c.level >= options_.furthest_step * lowest.value_or(1);
    if (lowest) return c.level >= options_.furthest_step * *lowest;
    const auto above = lowest_good(c.line - 1);
    return above && c.level >= *above;
  }

  std::optional<double> lowest_look(std::size_t line) const {
    return lowest(line, [](std::size_t) { return true; });
  }
  // The default's line is good at the default, whatever else was found.
  std::optional<double> lowest_good(std::size_t line) const {
    const auto found = lowest(line, [&](std::size_t k) { return within(k, 0); });
    return found || line != 0 ? found : 1.0;
  }
  template <typename Accept>
  std::optional<double> lowest(std::size_t line, Accept accept) const {
    std::optional<double> level;
    for (std::size_t k = 1; k < candidates_.size(); ++k) {
      const Candidate& c = candidates_[k];
      if (c.line != line || log_.looks[k].windows == 0 || !accept(k)) continue;
      level = std::min(level.value_or(c.level), c.level);
    }
    return level;
  }

  // Looks at one setting within the drift's time constant tell the same: a second one at once, more
  // only ever later.
  bool may_look(std::size_t k) const {
    const Looks& looks = log_.looks[k];
    if (looks.windows < options_.most_looks) return true;
    return log_.blocks.back().at_s - looks.last_s >
           options_.look_again_s * static_cast<double>(looks.windows);
  }

  // What may be lost by looking, in seconds at default clocks' energy: a small share of what was
  // run already, and what was gained by now. A job that ends early must not have lost by us.
  double allowance_s() const {
    double gained = 0;
    for (const Evidence& e : log_.blocks) {
      const Belief& b = beliefs_[e.candidate];
      gained += e.span_s * (1 - std::exp(b.time + b.power));
    }
    return options_.most_loss * std::max(log_.measured_s, options_.shortest_job_s) + 0.5 * gained;
  }

  // How much a look at `k` loses when things are as bad as may well be.
  double downside_s(std::size_t k) const {
    const double worst =
        worths_[k].value + options_.downside_sigmas * beliefs_.contrast_error(k, 0, time_weight_);
    return probe_seconds(k) * std::max(0.0, std::expm1(worst));
  }

  // Not far over the limit even when things are as good as may well be.
  bool promising(std::size_t k) const {
    return beliefs_[k].time - options_.hopeful_sigmas * beliefs_[k].time_error <= limit_;
  }

  // What a look takes, settling included.
  double probe_seconds(std::size_t k) const {
    const MeasureGoal& goal = beliefs_[k].time_error > kDarkError ? kGlance : kProbe;
    const double iterations_s = static_cast<double>(goal.least_iterations) *
                                std::exp(log_.blocks.front().log_time + beliefs_[k].time);
    // However short the time allowed, a window holds two iterations.
    const double shortest_s =
        std::max(goal.least.value(), 2 * iterations_s / static_cast<double>(goal.least_iterations));
    return options_.settle_s +
           std::clamp(iterations_s, shortest_s, std::max(shortest_s, goal.longest.value()));
  }

  // How likely it is that `k` is found to be within the limit by a measurement that moves what is
  // believed of its time by about `moved`.
  double admission(std::size_t k, double moved) const {
    const Belief& b = beliefs_[k];
    const double left = std::sqrt(std::max(0.0, b.time_error * b.time_error - moved * moved));
    const double spare = std::min(limit_ - options_.hold_sigmas * left,
                                  limit_ + options_.tolerance - options_.tail_sigmas * left) -
                         b.time;
    return moved > 0 ? normal_cdf(spare / moved) : (spare >= 0 ? 1.0 : 0.0);
  }

  double horizon_s() const {
    return std::clamp(log_.measured_s, options_.least_horizon_s, options_.most_horizon_s);
  }

  // How much better the held setting is expected to be, as a share of energy, once `k` was
  // measured.
  double knowledge_gain(std::size_t k, std::size_t hold) const {
    const double noise = options_.probe_error, own = beliefs_[k].time_error;
    const double admitted = admission(k, own * own / std::hypot(own, noise));
    const double contrast = beliefs_.contrast_error(k, hold, time_weight_);
    const double learned = contrast * contrast / std::hypot(contrast, options_.probe_energy_error);
    const double gain = expected_positive(worths_[hold].value - worths_[k].value, learned);
    return admitted * gain;
  }

  // In seconds at default clocks' energy: the probe's own waste, and too slow a clock is waste too.
  double probe_cost_s(std::size_t k, std::size_t hold) const {
    const double worse = expected_positive(worths_[k].value - worths_[hold].value,
                                           beliefs_.contrast_error(k, hold, time_weight_));
    const double slow = expected_positive(beliefs_[k].time - limit_, beliefs_[k].time_error);
    return probe_seconds(k) * (worse + slow) + options_.write_cost_s * 0.2;
  }

  const ConstrainedSearchOptions& options_;
  const std::vector<Candidate>& candidates_;
  const EvidenceLog& log_;
  double limit_;  // ln(1 + slow-down)
  double time_weight_;
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

  const double age_s = log.blocks.back().at_s - log.last_baseline_s;
  const double due_s =
      std::min(options_.longest_baseline_s,
               options_.first_baseline_after_s *
                   std::pow(options_.baseline_growth, static_cast<double>(log.baselines) - 1));
  if (age_s > options_.least_baseline_gap_s * static_cast<double>(log.baselines) &&
      outlook.baseline_profit(hold) > 0) {
    return at(Purpose::kBaseline, {}, kFreshBaseline, "default clocks decide what may be held");
  }
  // The second one comes in any case: what is claimed at the end rests on them.
  if (age_s > due_s && (log.baselines < 2 || outlook.hangs_on_baseline(hold) ||
                        age_s > options_.longest_baseline_s)) {
    return at(Purpose::kBaseline, {}, kFreshBaseline, "fresh baseline");
  }
  const double paced_s = options_.pace_s * std::pow(options_.pace_growth,
                                                    static_cast<double>(log.moves) -
                                                        static_cast<double>(options_.free_moves));
  const bool paced =
      log.moves >= options_.free_moves && log.blocks.back().at_s - log.last_move_s <= paced_s;
  if (log.probes < options_.most_probes) {
    const auto probe = outlook.best_probe(hold);
    if (probe.candidate != 0 && (!paced || probe.gain >= options_.urgent_gain)) {
      const bool dark = outlook.belief(probe.candidate).time_error > kDarkError;
      return at(Purpose::kProbe, candidates[probe.candidate].setting, dark ? kGlance : kProbe,
                outlook.expectation(probe.candidate));
    }
  }
  if (hold == 0 && log.probes == 0) {
    if (const std::size_t k = outlook.check(); k != 0) {
      return at(Purpose::kProbe, candidates[k].setting, kProbe, outlook.expectation(k));
    }
  }
  if (hold != 0) {
    return at(Purpose::kHold, candidates[hold].setting, kHold, outlook.expectation(hold));
  }
  return at(Purpose::kLeave, {}, kHold,
            fmt::format("no setting saves {:.0f} % within the limit", 100 * options_.least_saving));
}

}  // namespace gpoeo::policy
