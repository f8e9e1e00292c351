// SPDX-License-Identifier: Apache-2.0
// The card's power over its clocks: ln P relative to default, on a grid of SM slow-downs, is a mean
// curve plus a few shared curves (principal components of the training set: the card's voltage
// curve is in them), each scaled by a score. Scores come from kernel ridge regression on a few
// robust features: a workload that looks like a known one gets its curve, one far from all gets
// the mean. Thread rule: immutable once made.
#pragma once

#include <Eigen/Dense>

#include <array>
#include <span>
#include <vector>

#include "model/time_prior.h"

namespace gpoeo::model {

inline constexpr int kPowerCurves = 3;
using PowerScores = std::array<double, kPowerCurves>;

// Shared curves over x = default clock / clock, ascending; linear between, straight on outside.
struct PowerBasis {
  std::vector<double> x;
  std::vector<double> mean;
  std::array<std::vector<double>, kPowerCurves> curves;

  double log_power(const PowerScores& scores, double at) const;
  PowerScores project(const Line& line) const;
};
PowerBasis make_power_basis(std::span<const LineOf> lines);

inline constexpr std::size_t kKernelInputs = 4;
using KernelPoint = std::array<double, kKernelInputs>;
// ln power fraction, DRAM activity, root of SM activity, ln memory slow-down; a missing one is 0.
KernelPoint kernel_point(const Features& features, double memory_slowdown);

struct PowerKernel {
  KernelPoint centre{}, scale{};
  std::vector<KernelPoint> points;   // standardised
  std::vector<PowerScores> weights;  // one for each point
  PowerScores predict(const KernelPoint& at) const;
};
// `held_out` (as many as lines) gets what each line is predicted as by all lines of other families.
PowerKernel fit_power_kernel(std::span<const LineOf> lines, const PowerBasis& basis,
                             std::vector<PowerScores>* held_out);

}  // namespace gpoeo::model
