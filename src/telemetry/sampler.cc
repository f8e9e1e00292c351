// SPDX-License-Identifier: Apache-2.0
#include "telemetry/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "telemetry/power_integral.h"

namespace gpoeo::telemetry {
namespace {

using gpu::Reading;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Calls that fall due this soon are made now, so that one wake-up serves them all.
constexpr Duration kTogether = milliseconds(20);
constexpr Duration kFirstBackOff = seconds(1);
constexpr Duration kLongestBackOff = seconds(60);
constexpr Duration kFirstLook = seconds(1);
constexpr Duration kLongestLook = seconds(10);
constexpr Duration kDepthAgain = seconds(3);
constexpr Duration kFuture = milliseconds(100);
constexpr std::size_t kEventsKept = 1000;
// What one reading may at most be believed to be where the card does not tell its limits.
constexpr double kAbsurdWithoutLimitW = 3000;

Watts counter_max_power(const gpu::Capabilities& capabilities, double factor) {
  if (capabilities.power_limits && capabilities.power_limits->max.value() > 0) {
    return capabilities.power_limits->max * factor;
  }
  return Watts(kAbsurdWithoutLimitW);
}

}  // namespace

Sampler::Sampler(gpu::Device& device, const Clock& clock, SamplerOptions options)
    : device_(device),
      clock_(clock),
      options_(options),
      energy_schedule_(counter_max_power(device.capabilities(), options.absurd_power_factor)),
      power_period_(options.power_batch_min),
      absurd_above_w_(
          counter_max_power(device.capabilities(), options.absurd_power_factor).value()) {
  for (int i = 0; i < kReadings; ++i) {
    const gpu::Support support = device.capabilities().readings[i];
    readings_[static_cast<std::size_t>(i)].stats.dropped =
        support == gpu::Support::kNo || support == gpu::Support::kNoPermission;
  }
}

void Sampler::set_counter_period(std::optional<Duration> period) {
  counter_period_ = period;
  state(Reading::kCounters).due = Instant{};
}

bool Sampler::due(Reading reading, Instant now) const {
  const ReadingState& s = readings_[static_cast<std::size_t>(reading)];
  return !s.stats.dropped && !lost_since_ && s.due <= now + kTogether;
}

// Makes one call, keeps the books, and says the value if there is one.
template <typename Call>
auto Sampler::read(Reading reading, Instant now, Duration period, Call call) {
  ReadingState& s = state(reading);
  const Instant before = clock_.now();
  auto result = call();
  s.stats.spent += clock_.now() - before;
  ++s.stats.calls;
  s.due = now + period;
  using Value = typename decltype(result)::value_type;
  if (result) {
    note_success(reading, now);
    return std::optional<Value>(std::move(*result));
  }
  note_failure(reading, now, result.error());
  return std::optional<Value>();
}

void Sampler::note_success(Reading reading, Instant now) {
  ReadingState& s = state(reading);
  if (s.failed_in_a_row == 0) return;
  s.failed_in_a_row = 0;
  s.back_off = Duration{};
  add_event({SamplerEventKind::kReadingRecovered,
             now,
             reading,
             {},
             fmt::format("GPU {}: {} can be read again", device_.identity().index,
                         gpu::to_string(reading))});
}

void Sampler::note_failure(Reading reading, Instant now, const Error& error) {
  ReadingState& s = state(reading);
  switch (error.kind) {
    case ErrorKind::kBusy:
      return;  // no news yet: the counters' window has not passed
    case ErrorKind::kNotSupported:
    case ErrorKind::kNoPermission:
      drop(reading, now, error.text);
      return;
    case ErrorKind::kDeviceLost:
      ++s.stats.failures;
      lose_device(now, error);
      return;
    default:
      break;
  }
  ++s.stats.failures;
  s.back_off = s.failed_in_a_row == 0 ? kFirstBackOff : std::min(s.back_off * 2, kLongestBackOff);
  s.due = now + s.back_off;
  if (++s.failed_in_a_row > 1) return;
  std::string text = fmt::format("GPU {}: reading the {} failed: {}; will try again",
                                 device_.identity().index, gpu::to_string(reading), error.text);
  // A reading that fails on and off is logged for its first failure only; the count is in stats.
  if (s.stats.failures == 1) log::warning("{}", text);
  add_event({SamplerEventKind::kReadingFailing, now, reading, {}, std::move(text)});
}

void Sampler::drop(Reading reading, Instant now, std::string text) {
  state(reading).stats.dropped = true;
  log::debug("GPU {}: {} not available: {}", device_.identity().index, gpu::to_string(reading),
             text);
  add_event({SamplerEventKind::kReadingDropped, now, reading, {}, std::move(text)});
}

void Sampler::lose_device(Instant now, const Error& error) {
  if (lost_since_) return;
  lost_since_ = now;
  look_wait_ = kFirstLook;
  look_again_ = now + look_wait_;
  std::string text = fmt::format("GPU {} ({}) is lost: {}", device_.identity().index,
                                 device_.identity().uuid, error.text);
  log::error("{}", text);
  add_event({SamplerEventKind::kDeviceLost, now, Reading::kCount, {}, std::move(text)});
}

void Sampler::look_whether_back(Instant now) {
  if (now < look_again_) return;
  // Any answer but "lost" will do; a temperature is the reading that every card has.
  const Reading reading =
      state(Reading::kTemperature).stats.dropped ? Reading::kSmClock : Reading::kTemperature;
  ++state(reading).stats.calls;
  std::optional<ErrorKind> refusal;
  if (reading == Reading::kTemperature) {
    if (const auto answer = device_.temperature(); !answer) refusal = answer.error().kind;
  } else {
    if (const auto answer = device_.sm_clock(); !answer) refusal = answer.error().kind;
  }
  if (refusal && *refusal != ErrorKind::kNotSupported) {
    look_wait_ = std::min(look_wait_ * 2, kLongestLook);
    look_again_ = now + look_wait_;
    return;
  }
  const Duration away = now - *lost_since_;
  lost_since_.reset();
  for (ReadingState& s : readings_) {
    s.due = now;
    s.failed_in_a_row = 0;
    s.back_off = Duration{};
  }
  energy_schedule_.failed(now);
  std::string text = fmt::format("GPU {} is back after {:.1f} s", device_.identity().index,
                                 to_seconds(away).value());
  log::info("{}", text);
  add_event({SamplerEventKind::kDeviceBack, now, Reading::kCount, away, std::move(text)});
}

void Sampler::add_event(SamplerEvent event) {
  if (events_.size() < kEventsKept) events_.push_back(std::move(event));
}

std::vector<SamplerEvent> Sampler::take_events() { return std::exchange(events_, {}); }

Instant Sampler::poll(Instant now) {
  if (!first_poll_) first_poll_ = now;
  last_poll_ = now;
  if (lost_since_) look_whether_back(now);
  if (lost_since_) return look_again_;

  if (readings_requested_) {
    for (const Reading r : {Reading::kPowerSamples, Reading::kPowerInstant, Reading::kPowerAverage,
                            Reading::kSmClock, Reading::kMemoryClock, Reading::kEventReasons}) {
      // A failing reading keeps its back-off.
      if (state(r).failed_in_a_row == 0) state(r).due = now;
    }
    readings_requested_ = false;
  }
  // The counter goes first: its time stamp matters most and a slow batch would delay it.
  read_energy(now);
  read_power(now);
  read_status(now);
  read_counters(now);
  read_processes(now);
  if (lost_since_) return look_again_;
  return std::max(next_wanted(now), now + milliseconds(1));
}

void Sampler::read_power(Instant now) {
  if (state(Reading::kPowerSamples).stats.dropped) {
    poll_power(now);
    return;
  }
  if (!due(Reading::kPowerSamples, now)) return;
  // Asking for everything shows how deep the buffer is; at the start, and once more when a card
  // that has just come up had the time to fill it.
  const bool measure_depth = history_.power.empty() || (!depth_known_ && now >= depth_due_);
  const Instant newest = history_.power.empty() ? Instant{} : history_.power.back().time;
  auto samples = read(Reading::kPowerSamples, now, power_period_, [&] {
    return device_.power_samples_since(measure_depth ? Instant{} : newest);
  });
  if (!samples) return;
  if (measure_depth && samples->size() >= 2) {
    // Ask again before half of it is gone.
    const Duration depth = samples->back().time - samples->front().time;
    power_period_ = std::clamp(depth * 2 / 5, options_.power_batch_min, options_.power_batch_max);
    state(Reading::kPowerSamples).due = now + power_period_;
    depth_known_ = !history_.power.empty();
    if (!depth_known_) depth_due_ = now + kDepthAgain;
    std::erase_if(*samples, [&](const gpu::PowerSample& s) { return s.time <= newest; });
  }
  take_samples(*samples, now);
}

void Sampler::poll_power(Instant now) {
  const Reading reading =
      state(Reading::kPowerInstant).stats.dropped ? Reading::kPowerAverage : Reading::kPowerInstant;
  if (!due(reading, now)) return;
  const auto power = read(reading, now, options_.polled_power, [&] {
    return reading == Reading::kPowerInstant ? device_.power_instant() : device_.power_average();
  });
  if (power) take_samples({{clock_.now(), *power}}, now);
}

void Sampler::take_samples(const std::vector<gpu::PowerSample>& samples, Instant now) {
  for (const gpu::PowerSample& sample : samples) {
    const double power_w = sample.power.value();
    if (!std::isfinite(power_w) || power_w < 0 || power_w > absurd_above_w_) {
      ++refused_.absurd;
    } else if (sample.time > now + kFuture) {
      ++refused_.future;
    } else if (!history_.power.empty() && sample.time == history_.power.back().time) {
      ++refused_.duplicate;
    } else if (!history_.power.empty() && sample.time < history_.power.back().time) {
      ++refused_.out_of_order;
    } else {
      if (!history_.power.empty()) check_gap(history_.power.back().time, sample.time);
      history_.power.push(sample);
    }
  }
  if (!samples.empty()) spacing_ = median_spacing(history_.power);
}

void Sampler::check_gap(Instant before, Instant time) {
  if (!spacing_) return;
  const Duration distance = time - before;
  if (to_seconds(distance).value() <= options_.gap_factor * to_seconds(*spacing_).value()) return;
  const Duration missing = distance - *spacing_;
  ++gaps_;
  gap_time_ += missing;
  add_event({SamplerEventKind::kPowerGap, time, Reading::kPowerSamples, missing,
             fmt::format("GPU {}: no power samples for {:.0f} ms", device_.identity().index,
                         to_seconds(missing).value() * 1e3)});
}

void Sampler::read_status(Instant now) {
  StatusPoint point{};
  bool any = false;
  const auto ask = [&](Reading reading, Duration period, auto& field, auto call) {
    if (!due(reading, now)) return;
    if (auto value = read(reading, now, period, call)) {
      field = *value;
      any = true;
    }
  };
  ask(Reading::kSmClock, options_.clocks, point.sm_clock, [&] { return device_.sm_clock(); });
  ask(Reading::kMemoryClock, options_.clocks, point.memory_clock,
      [&] { return device_.memory_clock(); });
  ask(Reading::kEventReasons, options_.clocks, point.reasons,
      [&] { return device_.event_reasons(); });
  ask(Reading::kUtilization, options_.utilization, point.utilization,
      [&] { return device_.utilization(); });
  ask(Reading::kTemperature, options_.temperature, point.temperature,
      [&] { return device_.temperature(); });
  if (!any) return;
  point.time = now;
  history_.status.push(point);
}

void Sampler::read_energy(Instant now) {
  if (state(Reading::kEnergyCounter).stats.dropped || lost_since_) return;
  if (energy_schedule_.next() > now || state(Reading::kEnergyCounter).due > now) return;
  const Instant before = clock_.now();
  const auto energy =
      read(Reading::kEnergyCounter, now, Duration{}, [&] { return device_.energy_counter(); });
  if (!energy) {
    energy_schedule_.failed(std::max(state(Reading::kEnergyCounter).due, now + kFirstBackOff));
    return;
  }
  const CounterReading reading{before, clock_.now(), *energy};
  history_.energy.push(reading);
  energy_schedule_.done(reading);
}

void Sampler::read_counters(Instant now) {
  if (!counter_period_ || !due(Reading::kCounters, now)) return;
  auto counters =
      read(Reading::kCounters, now, *counter_period_, [&] { return device_.counters(); });
  if (counters) history_.counters.push({now, std::move(*counters)});
}

void Sampler::read_processes(Instant now) {
  if (!due(Reading::kProcesses, now)) return;
  auto processes = read(Reading::kProcesses, now, options_.processes,
                        [&] { return device_.compute_processes(); });
  if (!processes) return;
  history_.processes = std::move(*processes);
  history_.processes_time = now;
}

Instant Sampler::next_wanted(Instant now) const {
  Instant next = now + options_.power_batch_max;
  const auto consider = [&](Reading reading) {
    const ReadingState& s = readings_[static_cast<std::size_t>(reading)];
    if (!s.stats.dropped) next = std::min(next, s.due);
  };
  const auto has = [&](Reading reading) {
    return !readings_[static_cast<std::size_t>(reading)].stats.dropped;
  };
  consider(has(Reading::kPowerSamples)   ? Reading::kPowerSamples
           : has(Reading::kPowerInstant) ? Reading::kPowerInstant
                                         : Reading::kPowerAverage);
  for (const Reading r : {Reading::kSmClock, Reading::kMemoryClock, Reading::kEventReasons,
                          Reading::kUtilization, Reading::kTemperature, Reading::kProcesses}) {
    consider(r);
  }
  if (counter_period_) consider(Reading::kCounters);
  if (has(Reading::kEnergyCounter)) next = std::min(next, energy_schedule_.next());
  return next;
}

std::vector<Reading> Sampler::unavailable() const {
  std::vector<Reading> list;
  for (int i = 0; i < kReadings; ++i) {
    if (readings_[static_cast<std::size_t>(i)].stats.dropped) {
      list.push_back(static_cast<Reading>(i));
    }
  }
  return list;
}

double Sampler::calls_per_second() const {
  if (!first_poll_ || last_poll_ <= *first_poll_) return 0;
  std::uint64_t calls = 0;
  for (const ReadingState& s : readings_) calls += s.stats.calls;
  return static_cast<double>(calls) / to_seconds(last_poll_ - *first_poll_).value();
}

double Sampler::call_time_share() const {
  if (!first_poll_ || last_poll_ <= *first_poll_) return 0;
  Duration spent{};
  for (const ReadingState& s : readings_) spent += s.stats.spent;
  return to_seconds(spent).value() / to_seconds(last_poll_ - *first_poll_).value();
}

}  // namespace gpoeo::telemetry
