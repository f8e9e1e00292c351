// SPDX-License-Identifier: Apache-2.0
// The first default policy: measures its way to the SM clock that uses the least energy within the
// slow-down limit, needs no model and no counters, and goes on measuring while it holds.
//
// Baseline, then a first probe at about 3/4 of the highest clock; each probe bends a response fit
// (response_fit.h), whose best clock under the limit is the next probe, until that lies next to one
// already measured. While energy still falls at the lowest clock measured, it looks further down.
// Then hold: every window at the held clock sharpens its estimate, a fresh baseline comes in now
// and then so that drift does not pass for slow-down, and the clock moves to a neighbour when the
// pooled evidence says so. Found on the A100 tables of data/tables (shipped_curves_test.cc prints
// it).
#pragma once

#include "policy/policy.h"

namespace gpoeo::policy {

struct MeasuredSearchOptions {
  double first_probe = 0.76;   // of the highest clock
  double aim = 0.97;           // share of the limit aimed at by a clock not measured yet
  double enter_sigmas = 0.25;  // a measured clock is taken with so many errors to spare
  double stay_sigmas = 0.0;    // and kept with so many
  double refuse_sigmas = 1.0;  // over the limit by so many: nothing below it is tried
  double least_saving = 0.01;  // below this there is nothing to gain: default clocks
  double lowest = 0.3;         // of the highest clock; below, cards behave in ways of their own
  double step_down = 0.78;     // a probe goes at most this far below the lowest measured clock
  double look_down = 0.85;     // and so far when only energy still falling speaks for it
  double near = 0.045;         // of the highest clock: so near to a measured one no probe is needed
  std::size_t most_probes = 8;  // then hold the best measured
  double hysteresis = 0.003;    // energy gain for which a held clock is left
};

class MeasuredSearch final : public Policy {
 public:
  explicit MeasuredSearch(MeasuredSearchOptions options = {}) : options_(options) {}
  std::string_view name() const override { return "search"; }
  Decision decide(const Problem& problem, std::span<const Observation> observations) const override;

 private:
  MeasuredSearchOptions options_;
};

}  // namespace gpoeo::policy
