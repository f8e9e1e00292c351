// SPDX-License-Identifier: Apache-2.0
// What a longer repeat does besides the shorter ones in it.
//
// Thread rule: pure functions and plain values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "iteration/launch_marks.h"

namespace gpoeo::iteration {

struct OwnWork {
  // Launches of the longer repeat that are not the shorter ones', as a share of its length: what
  // lies between two of the shorter repeats, and by how much the one after that differs from the
  // others (the first micro-step of a step sets gradients to which the others add). 1: each shorter
  // repeat holds marks of the longer one.
  double share = 0;
  // What lies between is a loop of its own: a validation.
  bool is_loop = false;
};

// `inner`: where the shorter repeat's reference occurs; `outer`: the longer one's; `marks`: where
// any of the marks of the longer one occurs. All rising.
OwnWork own_work(std::span<const Launch> launches, std::span<const std::uint32_t> inner,
                 std::span<const std::uint32_t> outer, std::span<const std::uint32_t> marks);

}  // namespace gpoeo::iteration
