// SPDX-License-Identifier: Apache-2.0
// At which setting the job worked when: where no iteration is counted, that and how long one takes
// at each setting say how much work was done. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "policy/policy.h"

namespace gpoeo::control {

struct SettingSpan {
  Instant from, to;
  std::size_t phase = 0;  // kind of work
  policy::ClockSetting setting{};
  bool idle = false;  // nothing was done in it
};

// Calls come in order of time, but for `began`.
class SettingSpans {
 public:
  // Nothing before `at` is of interest. The job works at default clocks from here on.
  void begin(Instant at);
  bool begun() const { return !spans_.empty(); }
  void set(const policy::ClockSetting& setting, Instant at);
  void idle(bool idle, Instant at);
  // Work is of that phase from `began` on.
  void enter_phase(std::size_t phase, Instant began);
  // All spans, the last one to `end`.
  std::vector<SettingSpan> until(Instant end) const;

 private:
  SettingSpan& next(Instant at);

  std::vector<SettingSpan> spans_;  // the last one is open
};

}  // namespace gpoeo::control
