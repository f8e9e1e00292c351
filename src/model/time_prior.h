// SPDX-License-Identifier: Apache-2.0
// The few-parameter physics of time: from activities to the shape of a line. With a share g of the
// time on the GPU (gr_active), DRAM busy for d of that, and r = default memory clock over this one:
//
//   slope = (0.02 + (c0 + c1 tensor) g^exp(c2) exp(c3 host + c4 pipes + c5 load)) exp(-level)
//   knee  = c6 + c7 min(d r, 2.2)^2 + c8 load
//   level = ln(1 + g (s(c9 d r - 1) - s(c9 d - 1)))
//
// host = ln(PCIe bytes to the GPU per 20 MB/s + 0.2): what talks much to the host waits for it.
// pipes = busiest non-tensor pipe - 0.2. Where a card has no counters, g is its utilisation or 1,
// and load = ln(power / limit) + 0.7 stands in for what is unknown, d = logistic(c10 + c11 load).
//
// Each c has a prior (mean, standard deviation) in the .cc file, and is fitted in curve space, by
// Levenberg-Marquardt on a robust loss in which one odd workload counts once, not squared.
// Thread rule: pure.
#pragma once

#include <array>
#include <span>

#include "model/dataset.h"
#include "model/time_shape.h"

namespace gpoeo::model {

inline constexpr std::size_t kTimePriorSize = 12;
using TimePrior = std::array<double, kTimePriorSize>;

TimeShape prior_shape(const TimePrior& prior, const Features& features, double memory_slowdown,
                      double top);

// One line of one example; both outlive the fit.
struct LineOf {
  const Example* example = nullptr;
  const Line* line = nullptr;
};
TimePrior fit_time_prior(std::span<const LineOf> lines);

}  // namespace gpoeo::model
