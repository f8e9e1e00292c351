// SPDX-License-Identifier: Apache-2.0
// What was observed of the present work, bounded for jobs of many days. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "policy/policy.h"

namespace gpoeo::control {

// Appends `newest`. Beyond `most` the third-oldest look at the setting with the most looks goes:
// the newest look always stays, and so do the first two at each setting, by which policies know
// what they have tried.
void add_bounded(std::vector<policy::Observation>& observations, const policy::Observation& newest,
                 std::size_t most);

}  // namespace gpoeo::control
