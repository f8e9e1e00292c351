// SPDX-License-Identifier: Apache-2.0
// The truth about one job on one card: time and energy an iteration at every setting, without
// chance and at thermal balance. For the judge, never for a policy.
//
// A measured job's truth is its smoothed table (docs/response-tables.md) at the card's clocks; an
// analytic job's is its phases' formulas, and where the power cap binds the simulated card itself
// is asked, without noise.
//
// Thread rule: immutable once made.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "policy/policy.h"
#include "twin/device_model.h"
#include "twin/job_spec.h"

namespace gpoeo::bench {

// Over the default setting.
struct Response {
  double time = 1;
  double energy = 1;
};

struct TruthPoint {
  policy::ClockSetting setting{};
  Response response{};
};

class Truth {
 public:
  static Result<Truth> of(const twin::JobSpec& job, const twin::DeviceModel& device);

  // Of the nearest setting that the card has.
  Response at(const policy::ClockSetting& setting) const;
  // Every single setting that may be chosen, the default first.
  const std::vector<TruthPoint>& points() const { return points_; }
  double default_power_w() const { return default_power_w_; }

 private:
  std::vector<TruthPoint> points_;
  double default_power_w_ = 0;
  Hertz default_sm_, default_memory_;
  Watts default_limit_;
};

// What is to be least, from time and energy over the default's. `power_ratio`: the card's highest
// power over the job's mean power at default clocks (kCost only).
double objective_value(policy::Objective objective, const Response& response, double cost_eta,
                       double power_ratio);

// The best of all single settings within the limit.
struct Oracle {
  policy::ClockSetting setting{};
  Response response{};
  double saving() const { return 1 - response.energy; }
};
Oracle oracle(const std::vector<TruthPoint>& points, double max_slowdown,
              policy::Objective objective, double cost_eta, double power_ratio);

}  // namespace gpoeo::bench
