// SPDX-License-Identifier: Apache-2.0
// The search of the published GPOEO (IEEE TPDS 2022): predicted clocks from the models (the
// problem's prior), memory clock first, then the SM clock by golden section around the prediction,
// cubic polynomials through what was probed, and the best clock they predict is held for good. One
// reference at default clocks; no probe is repeated. Gears, radii and stopping rules as published,
// in shares of the card's clock table.
//
// Fair where the published code was not: energy is the whole card's (no 30 W taken off), each probe
// is a window of whole iterations from the same sensors as everybody's, and settling is detected
// instead of slept through. Without a prior the search starts from 0.8 of the highest clock, near
// the median optimum of its own evaluation.
//
// `published` rewards: E T^2 whatever the objective, and 0.9 of the limit (4.5 % for 5 %);
// otherwise the problem's own objective and the whole limit.
#pragma once

#include "policy/policy.h"

namespace gpoeo::policy {

struct GpoeoPaperOptions {
  bool published_reward = false;
  double start_without_prior = 0.8;  // of the highest clock
  double lowest = 0.225;             // of the highest clock: 450 of 1995 MHz as published
};

class GpoeoPaper final : public Policy {
 public:
  explicit GpoeoPaper(GpoeoPaperOptions options = {}) : options_(options) {}
  std::string_view name() const override {
    return options_.published_reward ? "gpoeo-paper:published" : "gpoeo-paper";
  }
  Decision decide(const Problem& problem, std::span<const Observation> observations) const override;

 private:
  GpoeoPaperOptions options_;
};

}  // namespace gpoeo::policy
