// SPDX-License-Identifier: Apache-2.0
// What is said of energy: where it came from, why from there, and over which window how much. Plain
// data.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/units.h"

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

}  // namespace gpoeo::telemetry
