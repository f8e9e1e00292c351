// SPDX-License-Identifier: Apache-2.0
// Energy over a window of time, with an uncertainty and the source it came from.
//
// Two sources. (a) The integral of the driver's power samples: a sample stands for the time since
// the one before it; at the window's edges it counts by its share; a gap is filled from its
// neighbours and widens the uncertainty. (b) The energy counter, whose readings tick_clock.h puts
// to the ticks they belong to; between two ticks the power samples give the shape.
//
// Samples are trusted when they are fine (median spacing <= 25 ms), continuous (>= 90 % outside
// gaps), and agree with the counter within 2 % over at least 3 s; else the counter; where there is
// none, or it stands still, samples with a wider uncertainty. An A100's samples see 25 ms of each
// 100 ms (arXiv 2312.02741) and so end with the counter. The choice is made once there is enough to
// judge (about 4 s); samples go on being checked and are given up, with a warning, when they
// disagree twice.
//
// Trusted samples are scaled to the counter by what is known of their difference (weighted against
// a sensor's usual drift of 0.3 %), so that the figures are the counter's, with the samples'
// resolution.
//
// Thread rule: the sampler's thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/units.h"
#include "telemetry/energy_schedule.h"
#include "telemetry/history.h"
#include "telemetry/power_integral.h"
#include "telemetry/tick_clock.h"

namespace gpoeo::telemetry {

enum class EnergySource {
  kPowerSamples,  // checked against the counter
  kEnergyCounter,
  kUncheckedSamples,  // nothing to check them against (yet): wider uncertainty
};
std::string_view to_string(EnergySource source);

struct SourceChoice {
  EnergySource source = EnergySource::kUncheckedSamples;
  bool final = false;  // false while there is not enough to judge
  // Integral of the samples over the counter's difference, minus 1; absent when not comparable.
  std::optional<double> agreement;
  double agreement_error = 0;  // its standard error: ticks and edges over a finite stretch
  Seconds compared_over;
  std::optional<Duration> spacing;  // median distance of samples
  double coverage = 0;              // share of that time outside gaps, 0..1
  std::string reason;               // one line, for the report and doctor
};

struct WindowEnergy {
  Joules energy;
  // One standard error from sampling, edges, ticks and what the samples' scale may have drifted
  // since it was checked (5 % for unchecked samples). A wrong counter is not in it: nothing here
  // could tell.
  Joules uncertainty;
  Seconds duration;
  EnergySource source = EnergySource::kUncheckedSamples;
  double coverage = 0;  // share of the window that samples cover outside gaps
  Watts mean_power() const { return energy / duration; }
};

struct EnergyMeterOptions {
  Duration fine_spacing = std::chrono::milliseconds(25);
  // How much of the time before its stamp a coarse sample has seen (A100: arXiv 2312.02741).
  Duration coarse_window = std::chrono::milliseconds(25);
  double agreement_limit = 0.02;
  Duration compare_at_least = std::chrono::seconds(3);
  double least_coverage = 0.9;
  double gap_factor = 2.6;  // as in SamplerOptions
  Watts max_power{3000};  // counter steps above this are no energy: a multiple of the card's limit
};

class EnergyMeter {
 public:
  // `history` must outlive it.
  explicit EnergyMeter(const History& history, EnergyMeterOptions options = {});

  // Takes in what the sampler has read since the last call and judges the sources. Call after each
  // poll; cheap when nothing is new. True when the choice changed.
  bool update();
  const SourceChoice& choice() const { return choice_; }
  // What the counter is for under this choice: pass it to Sampler::set_counter_role() whenever
  // update() says true.
  CounterRole role() const;

  // Energy in [t0, t1]. kInvalid when t1 <= t0 or the window began before what is kept; kBusy while
  // the readings that close it are not there yet (retry after the next poll, or call the sampler's
  // request_readings() and request_energy_mark()); kNotSupported when this card has no source at
  // all.
  Result<WindowEnergy> energy(Instant t0, Instant t1) const;
  // The same from one source, whatever the choice: for checks and doctor.
  Result<WindowEnergy> energy_from(EnergySource source, Instant t0, Instant t1) const;

  // Counter steps that were refused (wrap, reset, sentinel).
  std::uint64_t rejected_counter_steps() const { return ticks_.refused(); }

 private:
  // What the counter had reached at some instant, in one epoch of it.
  struct CounterAt {
    Joules energy;
    Joules uncertainty;
    int epoch;
  };
  Result<WindowEnergy> from_samples(Instant t0, Instant t1) const;
  Result<WindowEnergy> from_counter(Instant t0, Instant t1) const;
  Result<CounterAt> counter_at(Instant t) const;
  // The part of the `step_j` joules in [from, to] that lies before `t`, 0..1: as the samples shape
  // it, else linear in time.
  double share_before(Instant from, Instant t, Instant to, double step_j) const;
  std::optional<PowerIntegral> samples_integral(Instant t0, Instant t1) const;
  bool fine() const;
  // What samples are to be divided by, and how far that may be off.
  struct Scale {
    double factor = 1;
    double error = 0;
  };
  Scale sample_scale() const;
  void compare();
  bool judge();
  bool choose(EnergySource source, std::string reason);

  const History& history_;
  EnergyMeterOptions options_;
  TickClock ticks_;
  std::size_t readings_seen_ = 0;
  std::size_t samples_seen_ = 0;
  std::optional<Instant> judged_at_;
  int disagreements_ = 0;
  bool counter_stands_still_ = false;
  SourceChoice choice_;
};

}  // namespace gpoeo::telemetry
