// SPDX-License-Identifier: Apache-2.0
#include "telemetry/energy_meter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gpoeo::telemetry {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// No reading of the counter so long after a window's end: it will not come.
constexpr Duration kGiveUpCounter = seconds(30);
constexpr Duration kJudgeEach = milliseconds(500);
constexpr double kUncheckedScale = 0.05;

double seconds_of(Duration d) { return to_seconds(d).value(); }

}  // namespace

EnergyMeter::EnergyMeter(const History& history, EnergyMeterOptions options)
    : history_(history),
      options_(options),
      ticks_(options.max_power),
      judge_(history_, ticks_, options_),
      counter_(history_, ticks_, judge_, options_) {}

bool EnergyMeter::update() {
  const auto& readings = history_.energy;
  const std::size_t kept_from = readings.total_pushed() - readings.size();
  const bool new_readings = readings_seen_ < readings.total_pushed();
  for (std::size_t i = std::max(readings_seen_, kept_from); i < readings.total_pushed(); ++i) {
    ticks_.add(readings[i - kept_from]);
  }
  readings_seen_ = readings.total_pushed();
  const bool new_samples = samples_seen_ < history_.power.total_pushed();
  samples_seen_ = history_.power.total_pushed();
  if (!new_readings && !new_samples) return false;

  Instant newest{};
  if (!history_.power.empty()) newest = history_.power.back().time;
  if (!readings.empty()) newest = std::max(newest, readings.back().time);
  // Once chosen, only long comparisons count, so looking each 5 s is enough.
  const Duration each = choice().final ? Duration(seconds(5)) : Duration(kJudgeEach);
  if (judged_at_ && newest - *judged_at_ < each) return false;
  judged_at_ = newest;
  return judge_.judge();
}

CounterRole EnergyMeter::role() const {
  if (!choice().final) return CounterRole::kUndecided;
  return choice().source == EnergySource::kPowerSamples ? CounterRole::kCheckOnly
                                                        : CounterRole::kCarriesFigures;
}

Result<WindowEnergy> EnergyMeter::energy(Instant t0, Instant t1) const {
  if (choice().source == EnergySource::kEnergyCounter) {
    auto result = counter_.between(t0, t1);
    if (result) return result;
    const bool waits = result.error().kind == ErrorKind::kBusy;
    const bool given_up =
        !history_.power.empty() && history_.power.back().time - t1 > kGiveUpCounter;
    if (waits && !given_up) return result;
    auto samples = energy_from(EnergySource::kUncheckedSamples, t0, t1);
    return samples ? std::move(samples) : std::move(result);
  }
  auto result = energy_from(choice().source, t0, t1);
  if (result && result->coverage >= options_.least_coverage) return result;
  if (!result && result.error().kind == ErrorKind::kBusy) return result;
  // Samples with holes: the counter, if it knows this window, knows it better.
  if (auto counter = counter_.between(t0, t1); counter) {
    if (!result || counter->uncertainty < result->uncertainty) return counter;
  }
  return result;
}

Result<WindowEnergy> EnergyMeter::energy_from(EnergySource source, Instant t0, Instant t1) const {
  if (source == EnergySource::kEnergyCounter) return counter_.between(t0, t1);
  auto result = from_samples(t0, t1);
  if (!result) return result;
  const SourceJudge::Scale scale = judge_.sample_scale();
  result->energy = result->energy / scale.factor;
  if (source == EnergySource::kPowerSamples) {
    result->uncertainty =
        Joules(std::hypot(result->uncertainty.value(), scale.error * result->energy.value()));
    return result;
  }
  result->source = EnergySource::kUncheckedSamples;
  result->uncertainty =
      Joules(std::hypot(result->uncertainty.value(), kUncheckedScale * result->energy.value()));
  return result;
}

Result<WindowEnergy> EnergyMeter::from_samples(Instant t0, Instant t1) const {
  if (t1 <= t0)
    return make_error(ErrorKind::kInvalid, "energy window: its end is not after its start");
  if (history_.power.empty()) {
    return make_error(history_.energy.empty() ? ErrorKind::kBusy : ErrorKind::kNotSupported,
                      "energy window: no power samples from this GPU");
  }
  if (history_.power.front().time > t0) {
    return make_error(
        ErrorKind::kInvalid,
        fmt::format("energy window: starts {:.1f} s before the oldest power sample kept",
                    seconds_of(history_.power.front().time - t0)));
  }
  const auto integral = judge_.samples_integral(t0, t1);
  if (!integral) {
    return make_error(ErrorKind::kBusy,
                      "energy window: the power samples that close it are not here yet");
  }
  return WindowEnergy{integral->energy, integral->uncertainty, to_seconds(t1 - t0),
                      EnergySource::kPowerSamples, integral->coverage};
}

}  // namespace gpoeo::telemetry
