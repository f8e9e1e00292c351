// SPDX-License-Identifier: Apache-2.0
// Windows written down by hand, for tests of what is made of them.
#pragma once

#include <optional>

#include "policy/policy.h"

namespace gpoeo::control::testing {

// Twenty iterations at `mhz` (absent: default clocks) that took `time_s` each at `power_w`, known
// within 0.2 %.
inline policy::Observation look(std::optional<double> mhz, double time_s, double power_w,
                                std::optional<double> memory_mhz = std::nullopt) {
  policy::Observation o;
  if (mhz) o.setting.sm = megahertz(*mhz);
  if (memory_mhz) o.setting.memory = megahertz(*memory_mhz);
  o.iterations = 20;
  o.time = Seconds(time_s);
  o.time_error = Seconds(0.002 * time_s);
  o.energy = Joules(time_s * power_w);
  o.energy_error = Joules(0.002 * time_s * power_w);
  return o;
}

}  // namespace gpoeo::control::testing
