// SPDX-License-Identifier: Apache-2.0
// After a clock write: when has the card settled, and does it hold what was asked?
//
// Decides from two readings: the SM clock reads what was asked in several readings running, and
// power shows no step any more (the mean of the last stretch of samples equals that of the one
// before). Where power swings with the iterations by more than 15 % a step cannot be told from a
// swing, and the clock decides alone. A clock that a power or thermal limit keeps below what was
// asked is "could not hold", which is data, not an error; an idle card says nothing, as its clock
// may drop. Bounded by a deadline. Pure: no device, no clock.
//
// The sampler's own schedule is too slow for this: call its request_readings() before each poll
// (each 50-100 ms) until the state is not kWaiting.
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
  kCouldNotHold,  // the clock stays away from what was asked; see `reasons`
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
  Instant settled_at{};        // from when on power and progress count; not for kWaiting
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
  struct ClockView;
  ClockView look_at_clocks(const History& history) const;
  std::optional<Instant> power_steady_since(const History& history) const;
  void finish(SettleState state, Instant at, std::string text);

  Instant written_;
  std::optional<gpu::ClockRange> asked_;
  SettleOptions options_;
  SettleReport report_;
};

}  // namespace gpoeo::telemetry
