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

}  // namespace gpoeo::policy
