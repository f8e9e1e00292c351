// SPDX-License-Identifier: Apache-2.0
// After a clock write: when has the card settled, and does it hold what was asked?
//
// Fed with readings, decides from two of them: the SM clock reads what was asked in several
// readings running, and power shows no step any more (the change point is behind us: the last two
// stretches of samples have equal means within their scatter). Bounded by a deadline. Pure: no
// device, no clock.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/units.h"
#include "gpu/types.h"
#include "telemetry/history.h"

namespace gpoeo::telemetry {

enum class SettleState {
  kWaiting,
  kSettled,       // clock and power are steady at what was asked
  kCouldNotHold,  // steady, but the clock stays away from what was asked; see `reasons`
  kTimedOut,      // the deadline passed without a steady state; measure with care
};
std::string_view to_string(SettleState state);

struct SettleOptions {
  Duration deadline = std::chrono::seconds(3);
  Duration least = std::chrono::milliseconds(200);  // never settled before this
  Hertz clock_tolerance = megahertz(16);            // one step of the clock table and rounding
  int clock_readings = 2;                           // this many in a row must agree
  Duration power_stretch = std::chrono::milliseconds(400);  // two of these are compared
  double power_tolerance = 0.03;                            // of the mean, on top of the scatter
};

struct SettleReport {
  SettleState state = SettleState::kWaiting;
  Instant settled_at{};        // from when on readings count; valid unless kWaiting
  std::optional<Hertz> clock;  // as last read
  gpu::EventReasons reasons;   // seen while the clock was away from what was asked
  std::string text;            // one line for the log
};

class Settle {
 public:
  // A lock with `asked.max` as upper bound was written at `written`; nullopt = locks were reset,
  // then any steady clock is right.
  Settle(Instant written, std::optional<gpu::ClockRange> asked, SettleOptions options = {});

  // Looks at what `history` has since the write. Call after each poll until it is not kWaiting;
  // later calls return the same report.
  const SettleReport& update(const History& history, Instant now);
  const SettleReport& report() const { return report_; }

 private:
  Instant written_;
  std::optional<gpu::ClockRange> asked_;
  SettleOptions options_;
  SettleReport report_;
};

}  // namespace gpoeo::telemetry
