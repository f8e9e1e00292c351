// SPDX-License-Identifier: Apache-2.0
// Whether a window holds the same work as those before it. Pure.
#pragma once

#include <span>

#include "policy/policy.h"

namespace gpoeo::control {

// How far outside of what a clock can do a ratio must lie to be no answer of one work.
inline constexpr double kImpossibleMargin = 0.05;
inline constexpr double kImpossibleSigmas = 4;

// False when `now` differs from an earlier window at its setting by more than noise, or from the
// newest baseline by more than its clocks can do. `sm_clocks`: what the card can run at, ascending;
// empty: not known.
bool same_work(const policy::Observation& now, std::span<const policy::Observation> before,
               std::span<const Hertz> sm_clocks);

}  // namespace gpoeo::control
