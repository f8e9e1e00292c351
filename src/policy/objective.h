// SPDX-License-Identifier: Apache-2.0
// What is to be least, as a function of what is believed.
#pragma once

#include "policy/policy.h"
#include "policy/response_belief.h"

namespace gpoeo::policy {

// ln of the objective over its value at default clocks, and its standard error. Time and power are
// taken to err independently.
struct Worth {
  double value = 0;
  double error = 0;
};
Worth worth(const Problem& problem, const Belief& belief);

// The objective itself, of time and energy over default settings'.
double objective_value(Objective objective, double time, double energy, double cost_eta,
                       double most_power_over_default);

// How much ln(time) counts in ln(objective), beside 1 for ln(power).
double time_weight(Objective objective);

}  // namespace gpoeo::policy
