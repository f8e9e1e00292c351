// SPDX-License-Identifier: Apache-2.0
// Kinds of work that a job did before (training, validation, a second model), to know them again
// by: work that returns gets its observations back, and with them its clocks, at once. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "policy/policy.h"

namespace gpoeo::control {

// One kind of work, as it was left.
struct Work {
  std::vector<policy::Observation> observations;
  std::vector<policy::Prediction> prior;  // the model's word on it
  std::size_t ledger_phase = 0;           // where its iterations are booked
};

// Thread rule: the control thread.
class KnownWork {
 public:
  // Work without a baseline is not worth remembering. The oldest is forgotten beyond kMostKept.
  void remember(Work work);
  bool empty() const { return kept_.empty(); }
  // Takes out the work of which `now` looks like one more window: time and power per iteration at
  // its setting are what this work had there, or between its two nearest SM clocks on the same
  // memory clock. Where several would do, the nearest.
  std::optional<Work> recall(const policy::Observation& now);

 private:
  std::vector<Work> kept_;  // oldest first
};

}  // namespace gpoeo::control
