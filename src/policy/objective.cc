// SPDX-License-Identifier: Apache-2.0
#include "policy/objective.h"

#include <cmath>

namespace gpoeo::policy {

double objective_value(Objective objective, double time, double energy, double cost_eta,
                       double most_power_over_default) {
  switch (objective) {
    case Objective::kEnergy:
      return energy;
    case Objective::kEdp:
      return energy * time;
    case Objective::kEd2p:
      return energy * time * time;
    case Objective::kCost:
      return cost_eta * energy + (1 - cost_eta) * most_power_over_default * time;
  }
  return energy;
}

double time_weight(Objective objective) {
  switch (objective) {
    case Objective::kEnergy:
    case Objective::kCost:
      return 1;
    case Objective::kEdp:
      return 2;
    case Objective::kEd2p:
      return 3;
  }
  return 1;
}

Worth worth(const Problem& problem, const Belief& b) {
  if (problem.objective != Objective::kCost) {
    const double weight = time_weight(problem.objective);
    return {.value = weight * b.time + b.power,
            .error = std::hypot(weight * b.time_error, b.power_error)};
  }
  // ln(eta e^(t+p) + (1 - eta) m e^t) = t + ln(eta e^p + (1 - eta) m), relative to default.
  const double rest = (1 - problem.cost_eta) * problem.most_power_over_default;
  const double energy_share = problem.cost_eta * std::exp(b.power);
  const double now = energy_share + rest;
  return {.value = b.time + std::log(now / (problem.cost_eta + rest)),
          .error = std::hypot(b.time_error, energy_share / now * b.power_error)};
}

}  // namespace gpoeo::policy
