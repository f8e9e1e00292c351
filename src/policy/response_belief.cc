// SPDX-License-Identifier: Apache-2.0
#include "policy/response_belief.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "policy/posterior.h"

namespace gpoeo::policy {
namespace {

// Correlation of what a memory clock does to time with what it does to power: -0.92 on the Titan X.
// A job that waits for memory also draws less.
constexpr double kGearTimePower = -0.8;

double root(double variance) { return std::sqrt(std::max(0.0, variance)); }

}  // namespace

ResponseBelief::ResponseBelief(const Problem& problem, std::span<const Candidate> candidates,
                               std::span<const Evidence> evidence)
    : beliefs_(candidates.size()) {
  ResponsePriors priors = response_priors(problem, candidates, evidence);
  time_ = std::make_unique<const Posterior>(std::move(priors.time), candidates.size(), evidence,
                                            &Evidence::log_time, &Evidence::time_variance);
  power_ = std::make_unique<const Posterior>(std::move(priors.power), candidates.size(), evidence,
                                             &Evidence::log_power, &Evidence::power_variance);
  for (const Candidate& c : candidates) lines_.push_back(c.line);
  for (std::size_t c = 1; c < candidates.size(); ++c) {
    beliefs_[c] = {.time = time_->mean(c),
                   .time_error = time_->error(c),
                   .power = power_->mean(c),
                   .power_error = power_->error(c)};
    // Candidates of a line come from the highest level down.
    if (lines_[c] == lines_[c - 1]) {
      beliefs_[c].time = std::max(beliefs_[c].time, beliefs_[c - 1].time);
    }
  }
}

ResponseBelief::~ResponseBelief() = default;

double ResponseBelief::contrast_error(std::size_t a, std::size_t b, double time_weight) const {
  const double time = time_weight * root(time_->contrast_variance(a, b));
  const double power = root(power_->contrast_variance(a, b));
  const double together = lines_[a] == lines_[b] ? 0 : 2 * kGearTimePower * time * power;
  return root(time * time + power * power + together);
}

Lesson ResponseBelief::time_lesson(const Evidence& look) const { return time_->lesson(look); }
Lesson ResponseBelief::power_lesson(const Evidence& look) const { return power_->lesson(look); }

}  // namespace gpoeo::policy
