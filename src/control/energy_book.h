// SPDX-License-Identifier: Apache-2.0
// One GPU's energy from the job's first reading to its last, in consecutive stretches of a few
// seconds. Stretches end where iterations do, and are cut where a pause begins and ends: power in a
// pause is another, and a stretch that held both could only be shared out by time.
//
// Thread rule: the thread that owns the device.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "telemetry/energy_meter.h"
#include "telemetry/sampler.h"

namespace gpoeo::control {

// Stretches follow one another and never overlap; where they leave a hole nothing is known.
struct EnergyStretch {
  Instant from, to;
  Joules energy, error;
};

class EnergyBook {
 public:
  // Both must outlive it; `sampler` is asked for the readings that close a stretch.
  EnergyBook(telemetry::Sampler& sampler, const telemetry::EnergyMeter& meter, Instant now)
      : sampler_(sampler), meter_(meter), booked_to_(now) {}

  // An iteration ended: stretches end with the newest of them rather than anywhere.
  void iteration_ended(Instant at) { newest_end_ = at; }
  // A stretch is to end here. What is booked already stays as it is.
  void cut_at(Instant at);

  // The next stretch, when one can be closed.
  std::optional<EnergyStretch> poll(Instant now);
  // What is left, to `now` or as far as readings go.
  std::vector<EnergyStretch> close(Instant now);

  // Of all stretches so far.
  Joules energy() const { return energy_; }
  Seconds duration() const { return duration_; }
  // Set when time without energy was given up; told once.
  std::optional<Seconds> take_hole() { return std::exchange(hole_, std::nullopt); }

 private:
  bool open();
  std::optional<EnergyStretch> book(Instant to);
  void drop_passed_cuts();

  telemetry::Sampler& sampler_;
  const telemetry::EnergyMeter& meter_;
  bool open_ = false;
  Instant booked_to_;
  std::optional<Instant> newest_end_;
  std::deque<Instant> cuts_;           // ascending, all later than booked_to_
  std::optional<Instant> closing_at_;  // end of the stretch that waits for its readings
  Joules energy_;
  Seconds duration_;
  std::optional<Seconds> hole_;
};

}  // namespace gpoeo::control
