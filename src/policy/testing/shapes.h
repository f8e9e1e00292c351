// SPDX-License-Identifier: Apache-2.0
// Responses of every shape, to try policies on. Clocks as testing::a100_clocks().
#pragma once

#include <functional>
#include <vector>

#include "policy/testing/simulated_job.h"

namespace gpoeo::policy::testing {

struct Shape {
  const char* name;
  std::function<Reply(Hertz)> response;
};

// Convex, flat, stepped, not monotone, power-capped, host-bound, and one with nothing to gain (the
// last).
std::vector<Shape> shapes();

}  // namespace gpoeo::policy::testing
