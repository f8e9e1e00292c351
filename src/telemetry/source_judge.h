// SPDX-License-Identifier: Apache-2.0
// Which energy source is to be trusted: the driver's power samples or its energy counter. Samples
// are trusted when they are fine (median spacing <= 25 ms), continuous (>= 90 % outside gaps), and
// agree with the counter within 2 % over at least 3 s; else the counter; where there is none, or it
// stands still, samples with a wider uncertainty. An A100's samples see 25 ms of each 100 ms (arXiv
// 2312.02741) and so end with the counter. The choice is made once there is enough to judge (about
// 4 s); samples go on being checked and are given up, with a warning, when they disagree twice.
//
// Thread rule: the sampler's thread.
#pragma once

#include <optional>
#include <string>

#include "telemetry/history.h"
#include "telemetry/power_integral.h"
#include "telemetry/tick_clock.h"
#include "telemetry/window_energy.h"

namespace gpoeo::telemetry {

class SourceJudge {
 public:
  // All three must outlive it.
  SourceJudge(const History& history, const TickClock& ticks, const EnergyMeterOptions& options);

  // Judges what is there now. True when the choice changed.
  bool judge();
  const SourceChoice& choice() const { return choice_; }

  // Samples are fine enough to tell a window's shape.
  bool fine() const;
  // Of the power samples; nothing when they do not reach from t0 to t1.
  std::optional<PowerIntegral> samples_integral(Instant t0, Instant t1) const;
  // What samples are to be divided by, and how far that may be off (one standard error).
  struct Scale {
    double factor = 1;
    double error = 0;
  };
  Scale sample_scale() const;

 private:
  void compare();
  bool choose(EnergySource source, std::string reason);

  const History& history_;
  const TickClock& ticks_;
  const EnergyMeterOptions& options_;
  int disagreements_ = 0;
  bool counter_stands_still_ = false;
  SourceChoice choice_;
};

}  // namespace gpoeo::telemetry
