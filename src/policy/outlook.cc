// SPDX-License-Identifier: Apache-2.0
#include "policy/outlook.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "policy/posterior.h"
namespace gpoeo::policy {
namespace {

constexpr MeasureGoal kFreshBaseline{
    .least_iterations = 6, .least = Seconds(3), .longest = Seconds(8), .precision = 0.005};
constexpr MeasureGoal kProbe{
    .least_iterations = 6, .least = Seconds(3), .longest = Seconds(12), .precision = 0.004};
// Into the dark: a setting that may turn out far too slow is looked at only briefly.
constexpr MeasureGoal kGlance{
    .least_iterations = 3, .least = Seconds(1.5), .longest = Seconds(5), .precision = 0.02};
constexpr double kDarkError = 0.10;
// So many measurements are weighed in full, those that promise most by themselves. Neighbours teach
// much the same.
constexpr std::size_t kWeighed = 10;
// A look may be so many times as long as usual.
constexpr std::array kLengths = {1.0, 3.0, 9.0, 27.0};

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }
double normal_pdf(double z) { return std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi); }

// E[max(0, x)] for x ~ N(mean, sd).
double expected_positive(double mean, double sd) {
  if (sd <= 0) return std::max(0.0, mean);
  return mean * normal_cdf(mean / sd) + sd * normal_pdf(mean / sd);
}

}  // namespace

Outlook::Outlook(const Problem& problem, const ConstrainedSearchOptions& options,
                 const std::vector<Candidate>& candidates, const EvidenceLog& log)
    : options_(options),
      candidates_(candidates),
      log_(log),
      limit_(std::log1p(problem.max_slowdown)),
      time_weight_(time_weight(problem.objective)),
      beliefs_(problem, candidates, log.blocks) {
  for (std::size_t k = 0; k < beliefs_.size(); ++k) worths_.push_back(worth(problem, beliefs_[k]));
  find_reach();
  allowance_s_ = allowance_s();
  time_allowance_s_ = time_allowance_s();
}

bool Outlook::within(std::size_t k, double sigmas) const {
  const Belief& b = beliefs_[k];
  return k == 0 || (b.time + sigmas * b.time_error <= limit_ &&
                    b.time + options_.tail_sigmas * b.time_error <= limit_ + options_.tolerance);
}

std::size_t Outlook::best_to_hold(std::size_t held_now) const {
  std::size_t best = 0;
  double least = std::log1p(-options_.least_saving);
  if (held_now != 0 && within(held_now, options_.stay_sigmas)) {
    const double stay = worths_[held_now].value - options_.write_price_s / horizon_s();
    if (stay < least) {
      least = stay;
      best = held_now;
    }
  }
  for (std::size_t k = 1; k < candidates_.size(); ++k) {
    if (worths_[k].value >= least || !within(k, 0)) continue;
    least = worths_[k].value;
    best = k;
  }
  return best;
}

Outlook::Measurement Outlook::best_measurement(std::size_t hold) const {
  std::vector<Measurement> promising;
  for (std::size_t k = 1; k < candidates_.size(); ++k) {
    if (k == hold || !reachable(k) || !affordable(k)) continue;
    promising.push_back({k, own_profit(k, hold)});
  }
  const std::size_t weighed = std::min(kWeighed, promising.size());
  std::ranges::partial_sort(promising, promising.begin() + static_cast<std::ptrdiff_t>(weighed),
                            std::greater{}, &Measurement::profit);
  Measurement best;
  // Before anything else was looked at there is nothing to compare with.
  if (log_.probes > 0) best = weigh(0, hold);
  for (std::size_t i = 0; i < weighed; ++i) {
    const Measurement m = weigh(promising[i].candidate, hold);
    if (m.profit > best.profit) best = m;
  }
  return best;
}

std::size_t Outlook::check() const {
  std::size_t lowest = 0;
  for (std::size_t k = 1; k < candidates_.size() && candidates_[k].line == 0; ++k) {
    if (!affordable(k)) break;
    if (lowest != 0 && !within(k, 0)) break;
    lowest = k;
  }
  return lowest;
}

bool Outlook::dark(std::size_t k) const { return beliefs_[k].time_error > kDarkError; }

MeasureGoal Outlook::goal(std::size_t k, double length) const {
  MeasureGoal goal = k == 0 ? kFreshBaseline : dark(k) ? kGlance : kProbe;
  goal.least_iterations =
      static_cast<std::size_t>(length * static_cast<double>(goal.least_iterations));
  goal.least = goal.least * length;
  goal.longest = goal.longest * length;
  goal.precision /= std::sqrt(length);
  return goal;
}

std::string Outlook::expectation(std::size_t k) const {
  return fmt::format("{:.1f} % less energy at {:+.1f}+-{:.1f} % time expected",
                     100 * (1 - std::exp(beliefs_[k].time + beliefs_[k].power)),
                     100 * std::expm1(beliefs_[k].time), 100 * beliefs_[k].time_error);
}

void Outlook::find_reach() {
  reach_.resize(candidates_.back().line + 1);
  // The default's line is good at the default, whatever else was found.
  reach_[0].lowest_good = 1.0;
  for (std::size_t k = 1; k < candidates_.size(); ++k) {
    if (log_.looks[k].windows == 0) continue;
    Reach& reach = reach_[candidates_[k].line];
    const double level = candidates_[k].level;
    reach.lowest_look = std::min(reach.lowest_look.value_or(level), level);
    if (within(k, 0)) reach.lowest_good = std::min(reach.lowest_good.value_or(level), level);
  }
}

// How far one may go with what was seen. Along a line: not much below the lowest level looked at.
// On another memory clock: first at an SM clock that was found good, so that one thing is changed
// at a time, and only when nothing speaks against the memory clock above it.
bool Outlook::reachable(std::size_t k) const {
  const Candidate& c = candidates_[k];
  const auto& lowest = reach_[c.line].lowest_look;
  if (c.line == 0 || lowest) return c.level >= options_.furthest_step * lowest.value_or(1);
  const auto& above = reach_[c.line - 1].lowest_good;
  return above && c.level >= *above;
}

double Outlook::horizon_s() const { return std::max(log_.measured_s, options_.least_horizon_s); }

// What may be lost by looking: a small share of what was run already, and what was gained by now. A
// job that ends early must not have lost by us.
double Outlook::allowance_s() const {
  double gained = 0;
  for (const Evidence& e : log_.blocks) {
    const Belief& b = beliefs_[e.candidate];
    gained += e.span_s * (1 - std::exp(b.time + b.power));
  }
  return options_.most_loss * std::max(log_.measured_s, options_.shortest_job_s) +
         (gained > 0 ? 0.5 : 1) * gained;
}

// What may be spent beyond the limit by looking: were the job to run for as long again as it has,
// and at the limit all the time, it would not be over it by more than as much again.
double Outlook::time_allowance_s() const {
  double spent = 0;
  for (const Evidence& e : log_.blocks) {
    spent += e.span_s * std::max(0.0, -std::expm1(limit_ - beliefs_[e.candidate].time));
  }
  return 1 * std::expm1(limit_) * log_.measured_s - spent;
}

// That a look at `k` would not lose more than may be lost when things are as bad as may well be.
bool Outlook::affordable(std::size_t k, double length) const {
  const double sigmas = options_.downside_sigmas;
  // An iteration that is under way when clocks change counts for nothing.
  const double slow = beliefs_[k].time + sigmas * beliefs_[k].time_error;
  const double took_s = options_.settle_s + length * window_seconds(k, slow) + iteration_s(slow);
  if (took_s * -std::expm1(limit_ - slow) > time_allowance_s_) return false;
  const double worst = worths_[k].value + sigmas * beliefs_.contrast_error(k, 0, time_weight_);
  return worst <= 0 || took_s * std::exp(-slow) * std::expm1(worst) <= allowance_s_;
}

double Outlook::iteration_s(double log_time) const {
  return std::exp(log_.blocks.front().log_time + log_time);
}

// What a look of the usual length takes, were iterations that much slower.
double Outlook::window_seconds(std::size_t k, double log_time) const {
  const MeasureGoal goal = this->goal(k);
  // However short the time allowed, a window holds two iterations.
  const double shortest_s = std::max(goal.least.value(), 2 * iteration_s(log_time));
  return std::clamp(static_cast<double>(goal.least_iterations) * iteration_s(log_time), shortest_s,
                    std::max(shortest_s, goal.longest.value()));
}

// How likely it is that `k` is found to be within the limit by a measurement that moves what is
// believed of its time by about `moved`.
double Outlook::admission(std::size_t k, double moved) const {
  const Belief& b = beliefs_[k];
  const double left = std::sqrt(std::max(0.0, b.time_error * b.time_error - moved * moved));
  const double spare =
      std::min(limit_, limit_ + options_.tolerance - options_.tail_sigmas * left) - b.time;
  return moved > 0 ? normal_cdf(spare / moved) : (spare >= 0 ? 1.0 : 0.0);
}

// What is expected to be gained by holding `to` once a look has moved what is believed, as a share
// of energy; 0 when that is surely less than `at_least`. Whether it is let in and how much it then
// saves are taken to be independent.
double Outlook::gain_of(std::size_t to, std::size_t hold, const Moves& moves,
                        double at_least) const {
  const double time = (moves.time[to] - moves.time[hold]) * moves.per_time;
  const double power = (moves.power[to] - moves.power[hold]) * moves.per_power;
  const double moved = std::hypot(time_weight_ * time, power);
  const double better = worths_[hold].value - worths_[to].value;
  constexpr double kMost = 0.4;  // E[max(0, x)] is at most max(0, mean) and so many sd
  if (std::max(0.0, better) + kMost * moved <= at_least) return 0;
  return expected_positive(better, moved) *
         admission(to, std::abs(moves.time[to]) * moves.per_time);
}

// What a look at `k` is worth for holding `k` itself, told as if it were told exactly: for choosing
// what to weigh in full.
double Outlook::own_profit(std::size_t k, std::size_t hold) const {
  const double contrast = beliefs_.contrast_error(k, hold, time_weight_);
  const double gain = expected_positive(worths_[hold].value - worths_[k].value, contrast) *
                      admission(k, beliefs_[k].time_error);
  return horizon_s() * gain - cost_s(k, hold, 1);
}

// The look's own waste; and too slow a clock is waste too.
double Outlook::cost_s(std::size_t k, std::size_t hold, double length) const {
  const double contrast = beliefs_.contrast_error(k, hold, time_weight_);
  const double worse = expected_positive(worths_[k].value - worths_[hold].value, contrast);
  const double slow =
      k == 0 ? 0 : expected_positive(beliefs_[k].time - limit_, beliefs_[k].time_error);
  return (options_.settle_s + length * window_seconds(k, beliefs_[k].time)) * (worse + slow);
}

// With the length that pays best. A setting near the limit is told from one beyond it by a long
// look only, and by many short ones none is ever worth its cost.
Outlook::Measurement Outlook::weigh(std::size_t k, std::size_t hold) const {
  const double window_s = window_seconds(k, beliefs_[k].time);
  const Evidence& last = log_.blocks.back();
  const Evidence look{
      .candidate = k, .at_s = last.at_s + 0.5 * (last.span_s + window_s), .span_s = window_s};
  const Lesson time = beliefs_.time_lesson(look), power = beliefs_.power_lesson(look);
  // Going to the default clocks and back are two changes.
  const double writes_s = (k == 0 ? 2 : 1) * options_.write_price_s;
  const double longest = dark(k) ? 1 : options_.longest_look * log_.measured_s / window_s;
  std::optional<Measurement> best;
  for (const double length : kLengths) {
    if (length > 1 && (length > longest || !affordable(k, length))) break;
    const double span_s = length * window_s;
    const Moves moves{.time = time.covariance,
                      .power = power.covariance,
                      .per_time = 1 / std::sqrt(time.variance + log_.time_noise / span_s),
                      .per_power = 1 / std::sqrt(power.variance + log_.power_noise / span_s)};
    double gain = 0;
    for (std::size_t to = 1; to < candidates_.size(); ++to) {
      if (to != hold) gain = std::max(gain, gain_of(to, hold, moves, gain));
    }
    const double profit = horizon_s() * gain - cost_s(k, hold, length) - writes_s;
    if (!best || profit > best->profit) best = {k, profit, length};
  }
  return *best;
}

}  // namespace gpoeo::policy
