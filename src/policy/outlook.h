// SPDX-License-Identifier: Apache-2.0
// What is believed of every setting, weighed: what may be held, what a measurement would be worth
// and what it costs. Everything is counted in one unit: seconds of the job's energy at default
// clocks.
//
// The value of a measurement (knowledge gradient, Frazier, Powell and Dayanik 2008): by how much
// more the job is expected to save once it is read, for as long as the job is expected to go on. A
// job of unknown length is expected to go on for as long as it has been running (the median of
// what is left when nothing else is known, Gott 1993, "Lindy's law"). A gain of g is so worth its
// price p once the job has run p / g: what promises much is measured at once, what promises little
// ever later, and a job that has only begun is not spent on details.
//
// A measurement of default clocks is one like any other: it moves what is believed of all settings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policy/candidates.h"
#include "policy/constrained_search.h"
#include "policy/evidence.h"
#include "policy/objective.h"
#include "policy/policy.h"
#include "policy/response_belief.h"

namespace gpoeo::policy {

// One look at the evidence; built for each decision. Thread rule: immutable.
class Outlook {
 public:
  // All must outlive it.
  Outlook(const Problem& problem, const ConstrainedSearchOptions& options,
          const std::vector<Candidate>& candidates, const EvidenceLog& log);

  // Within the limit in expectation, with `sigmas` standard errors to spare, and beyond it by more
  // than the tolerance with little chance only. Default clocks always are.
  bool within(std::size_t k, double sigmas) const;

  // What would be held now; 0 = default clocks. `held_now` is left only for a gain that is worth
  // the change.
  std::size_t best_to_hold(std::size_t held_now) const;

  struct Measurement {
    std::size_t candidate = 0;  // 0 = default clocks
    double profit = 0;          // value less cost; nothing is worth measuring at 0 or less
    double length = 1;          // times the usual
  };
  Measurement best_measurement(std::size_t hold) const;

  // Where nothing promises anything, before default clocks are left alone for good: the lowest
  // setting believed to be within the limit, or else the nearest to default. Whoever says that
  // there is nothing to gain must have looked once. 0 = none that could be afforded.
  std::size_t check() const;

  // A setting whose slow-down is hardly known is only glanced at.
  bool dark(std::size_t k) const;
  MeasureGoal goal(std::size_t k, double length = 1) const;
  std::string expectation(std::size_t k) const;

 private:
  struct Reach {
    std::optional<double> lowest_look, lowest_good;  // levels
  };
  struct Moves {
    const std::vector<double>&time, &power;  // for each candidate, times:
    double per_time, per_power;
  };
  void find_reach();
  bool reachable(std::size_t k) const;
  bool affordable(std::size_t k, double length = 1) const;
  double horizon_s() const;
  double allowance_s() const;
  double time_allowance_s() const;
  double iteration_s(double log_time) const;
  double window_seconds(std::size_t k, double log_time) const;
  double admission(std::size_t k, double moved) const;
  double gain_of(std::size_t to, std::size_t hold, const Moves& moves, double at_least) const;
  double own_profit(std::size_t k, std::size_t hold) const;
  double cost_s(std::size_t k, std::size_t hold, double length) const;
  Measurement weigh(std::size_t k, std::size_t hold) const;

  const ConstrainedSearchOptions& options_;
  const std::vector<Candidate>& candidates_;
  const EvidenceLog& log_;
  double limit_;  // ln(1 + slow-down)
  double time_weight_;
  ResponseBelief beliefs_;
  std::vector<Worth> worths_;
  std::vector<Reach> reach_;  // by line
  double allowance_s_ = 0, time_allowance_s_ = 0;
};

}  // namespace gpoeo::policy
