// SPDX-License-Identifier: Apache-2.0
// What a policy may choose from: every setting the card offers, with the coordinates in which
// responses are smooth.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "policy/policy.h"

namespace gpoeo::policy {

struct Candidate {
  ClockSetting setting{};
  double level = 1;      // SM clock (or power limit) over its highest; 1 = default
  double gear = 0;       // ln(default memory clock / memory clock); 0 = default
  std::size_t line = 0;  // candidates of one memory clock share a line
};

// The default first; then by line, each line from its highest level down. Where SM clocks can be
// set the power limit is left alone: a clock does what a limit does, without the governor's lag.
// Empty when there is nothing to choose: fewer than three SM clocks and no power limit.
std::vector<Candidate> candidates_of(const Problem& problem);

}  // namespace gpoeo::policy
