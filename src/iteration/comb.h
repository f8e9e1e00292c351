// SPDX-License-Identifier: Apache-2.0
// How strongly a series repeats with each period: combs on its autocorrelation.
//
// Thread rule: plain values and pure functions.
#pragma once

#include <span>
#include <vector>

#include "iteration/series.h"

namespace gpoeo::iteration {

// One period at which the series repeats.
struct Comb {
  double period_s = 0;  // from several multiples, to a fraction of a sample
  // Mean autocorrelation at the first multiples of the period over that around them: the share of
  // the variance that repeats, slow changes not counted. 0..1.
  double strength = 0;
  int multiples = 0;  // that fitted in
};

// The strongest periods of each octave from 2 samples on, strongest first.
std::vector<Comb> find_combs(std::span<const double> autocorrelation, double step_s);

// Autocorrelation at those multiples of `period_s` that are multiples of `factor` of it, and at the
// others: a step of `factor` micro-steps repeats better as a whole.
struct Nesting {
  double at_step = 0, between = 0;  // means
  double spread = 0;                // standard deviation of the others
  int steps = 0;                    // multiples of the whole step that fitted in
};
Nesting nesting(std::span<const double> autocorrelation, double step_s, double period_s,
                int factor);

}  // namespace gpoeo::iteration
