// SPDX-License-Identifier: Apache-2.0
// What an iteration of some work takes at default clocks, for the books: from all windows that were
// measured there, with all that may be off. Pure.
#pragma once

#include <optional>
#include <span>

#include "policy/policy.h"
#include "report/session.h"

namespace gpoeo::control {

// nullopt: none of the windows is at default clocks.
std::optional<report::BaselineSection> baseline_of(std::span<const policy::Observation> windows);

// Seconds an iteration at `setting`, as measured there; nullopt: never.
std::optional<report::Figure> time_at(std::span<const policy::Observation> windows,
                                      const policy::ClockSetting& setting);

// Leakage grows with temperature: a baseline is measured on a card that has not come to the heat of
// hours at default clocks, and so uses a little less than it would then: 0.1 to 1.5 % less on the
// simulated A100, where the truth is known. The saving is understated by that; how much is not
// known.
inline constexpr double kThermalError = 0.008;
// Where every window at default clocks is of the first minute (a job of a few minutes, a policy
// that measures them once): 1.4 to 2.1 % less, on five simulated cards.
inline constexpr double kColdError = 0.012;

}  // namespace gpoeo::control
