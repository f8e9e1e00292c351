// SPDX-License-Identifier: Apache-2.0
// What a policy may choose from: every setting the card offers, with the coordinates in which
// responses are smooth.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "policy/policy.h"

namespace gpoeo::policy {

struct Candidate {
  ClockSetting setting{};
  // SM clock (or power limit) over what the card runs at by default; 1 = default. A cap that binds
  // keeps the default below the highest clock: asking for more than that changes nothing.
  double level = 1;
  double gear = 0;       // ln(default memory clock / memory clock); 0 = default
  std::size_t line = 0;  // candidates of one memory clock share a line; 0 = the default's
};

// The default first; then by line, lines by falling memory clock, each from its highest level down.
// `default_sm`: the mean SM clock at default settings, when it was measured. Where SM clocks can be
// set the power limit is left alone: a clock does what a limit does, without the governor's lag.
// Memory clocks within a few per cent of the next higher one are left out. Empty when there is
// nothing to choose: fewer than three SM clocks and no power limit.
std::vector<Candidate> candidates_of(const Problem& problem, std::optional<Hertz> default_sm);

// Mean SM clock over all windows at default settings; nullopt when none could read it.
std::optional<Hertz> default_sm_clock(std::span<const Observation> observations);

}  // namespace gpoeo::policy
