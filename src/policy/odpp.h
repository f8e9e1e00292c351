// SPDX-License-Identifier: Apache-2.0
// ODPP (CCGRID '20) as the GPOEO authors re-implemented it, with that code's four faults mended:
// SM clock only; a reference at default clocks; four clocks spread evenly over the card's range,
// 25 s each; linear interpolation of time and of energy between them; three calibration clocks at
// the midpoints; then the clock whose predicted value is least within 0.9 of the limit (4.5 % of
// 5 %), held for good.
//
// Mended: (a) predictions are relative to the default run, as the limit is; (b) feasible clocks are
// those predicted to be; (c) features are the base run's; (d) stopping restores. Its neural network
// corrects the interpolation by what the calibration clocks showed; the pre-trained weights are not
// public, so the correction here is interpolated linearly through the three calibration clocks,
// zero at the sampled ones, which is what a network that fits both would answer there.
#pragma once

#include "policy/policy.h"

namespace gpoeo::policy {

struct OdppOptions {
  double lowest = 0.225;  // of the highest clock: 450 of 1995 MHz as published
  double margin = 0.9;    // of the limit
};

class Odpp final : public Policy {
 public:
  explicit Odpp(OdppOptions options = {}) : options_(options) {}
  std::string_view name() const override { return "odpp"; }
  Decision decide(const Problem& problem, std::span<const Observation> observations) const override;

 private:
  OdppOptions options_;
};

}  // namespace gpoeo::policy
