// SPDX-License-Identifier: Apache-2.0
#include "policy/objective.h"

#include <cmath>

namespace gpoeo::policy {

Worth worth(const Problem& problem, const Belief& b) {
  const auto sum = [&](double time_weight, double power_weight) {
    return Worth{.value = time_weight * b.time + power_weight * b.power,
                 .error = std::hypot(time_weight * b.time_error, power_weight * b.power_error)};
  };
  switch (problem.objective) {
    case Objective::kEnergy:
      return sum(1, 1);
    case Objective::kEdp:
      return sum(2, 1);
    case Objective::kEd2p:
      return sum(3, 1);
    case Objective::kCost: {
      // ln(eta e^(t+p) + (1 - eta) m e^t) = t + ln(eta e^p + (1 - eta) m), relative to default.
      const double rest = (1 - problem.cost_eta) * problem.most_power_over_default;
      const double energy_share = problem.cost_eta * std::exp(b.power);
      const double now = energy_share + rest;
      return {.value = b.time + std::log(now / (problem.cost_eta + rest)),
              .error = std::hypot(b.time_error, energy_share / now * b.power_error)};
    }
  }
  return {};
}

}  // namespace gpoeo::policy
