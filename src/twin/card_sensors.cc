// SPDX-License-Identifier: Apache-2.0
#include "twin/card_sensors.h"

#include <algorithm>

namespace gpoeo::twin {
namespace {

constexpr std::uint64_t kHistory = std::tuple_size_v<decltype(WindowedPower::energy_j)>;

void push(SampleRing& ring, std::int64_t t_ns, double value, double second) {
  ring.values[ring.written % kSampleRing] = {t_ns, static_cast<float>(value),
                                             static_cast<float>(second)};
  ++ring.written;
}

bool short_window(const SensorTiming& timing) { return timing.window_ns < timing.period_ns; }

void mark(WindowedPower& sensor, const CardState& s, std::uint64_t index) {
  sensor.energy_j[index % kHistory] = s.energy_j;
  sensor.time_ns[index % kHistory] = s.t_ns;
}

void schedule(WindowedPower& sensor, const SensorTiming& timing, Random& random, std::int64_t now) {
  sensor.tick_ns += timing.period_ns;
  if (timing.jitter_us > 0)
    sensor.tick_ns += static_cast<std::int64_t>(next_uniform(random) * 1000.0 * timing.jitter_us);
  sensor.next_ns =
      short_window(timing) ? std::max(now, sensor.tick_ns - timing.window_ns) : sensor.tick_ns;
}

// The mean since the window's begin; true when a new value is there.
bool step(WindowedPower& sensor, const SensorTiming& timing, CardState& s, double& mean_w) {
  if (short_window(timing)) {
    if (sensor.next_ns != sensor.tick_ns) {
      mark(sensor, s, 0);
      sensor.next_ns = sensor.tick_ns;
      return false;
    }
    const double dt = static_cast<double>(s.t_ns - sensor.time_ns[0]) * 1e-9;
    mean_w = (s.energy_j - sensor.energy_j[0]) / dt;
  } else {
    const auto window = static_cast<std::uint64_t>(timing.window_ns / timing.period_ns);
    const std::uint64_t begin = sensor.ticks >= window ? sensor.ticks - window + 1 : 0;
    // Mark 0 is the start; the tick under way is number `ticks` + 1.
    const double dt = static_cast<double>(s.t_ns - sensor.time_ns[begin % kHistory]) * 1e-9;
    mean_w = (s.energy_j - sensor.energy_j[begin % kHistory]) / dt;
    mark(sensor, s, sensor.ticks + 1);
  }
  ++sensor.ticks;
  schedule(sensor, timing, s.random, s.t_ns);
  return true;
}

void start(WindowedPower& sensor, const SensorTiming& timing, CardState& s) {
  sensor = WindowedPower{};
  sensor.tick_ns = s.t_ns;
  sensor.shown_w = s.work_w;
  sensor.shown_ns = s.t_ns;
  mark(sensor, s, 0);
  schedule(sensor, timing, s.random, s.t_ns);
}

double noisy(CardState& s, const DeviceModel& d, double mean_w, double noise_cv) {
  const double noise = noise_cv > 0 ? noise_cv * next_normal(s.random) : 0.0;
  return std::max(0.0, mean_w * d.power_gain * (1.0 + s.sensor_drift + noise));
}

void show(WindowedPower& sensor, std::int64_t t_ns, double watts) {
  sensor.shown_w = watts;
  sensor.shown_ns = t_ns;
}

void utilization_tick(CardState& s, const DeviceModel& d) {
  const double window_s = static_cast<double>(d.utilization.period_ns) * 1e-9;
  const auto dram = static_cast<std::size_t>(Activity::kDramActive);
  const double busy = (s.busy_integral_s - s.busy_at_window_s) / window_s;
  const double memory = (s.activity_integral[dram] - s.dram_at_window) / window_s;
  s.busy_at_window_s = s.busy_integral_s;
  s.dram_at_window = s.activity_integral[dram];
  s.utilization_shown = std::clamp(busy, 0.0, 1.0);
  s.memory_utilization_shown = std::clamp(memory, 0.0, 1.0);
  push(s.utilization_ring, s.t_ns, s.utilization_shown, s.memory_utilization_shown);
  s.utilization_next_ns += d.utilization.period_ns;
}

}  // namespace

void initialize_sensors(CardState& s, const DeviceModel& d) {
  start(s.samples, d.power_samples, s);
  start(s.instant, d.power_instant, s);
  start(s.average, d.power_average, s);
  s.energy_next_ns = s.t_ns + d.energy_tick_ns;
  s.utilization_next_ns = s.t_ns + d.utilization.period_ns;
  s.gpm_next_ns = d.gpm_period_ns > 0 ? s.t_ns + d.gpm_period_ns : kNever;
  s.gpm_shown_ns = s.t_ns;
  s.sensor_drift_ns = s.t_ns;
  s.sensor_drift = d.power_drift_sigma > 0 ? d.power_drift_sigma * next_normal(s.random) : 0.0;
}

std::int64_t next_sensor_event(const CardState& s) {
  return std::min({s.samples.next_ns, s.instant.next_ns, s.average.next_ns, s.energy_next_ns,
                   s.utilization_next_ns, s.gpm_next_ns});
}

void sensor_events(CardState& s, const DeviceModel& d) {
  double mean_w = 0;
  if (s.samples.next_ns <= s.t_ns && step(s.samples, d.power_samples, s, mean_w)) {
    const double dt_s = static_cast<double>(s.t_ns - s.sensor_drift_ns) * 1e-9;
    s.sensor_drift_ns = s.t_ns;
    s.sensor_drift =
        next_drift(s.random, s.sensor_drift, d.power_drift_sigma, d.power_drift_tau_s, dt_s);
    show(s.samples, s.t_ns, noisy(s, d, mean_w, d.power_noise_cv));
    push(s.power_ring, s.t_ns, s.samples.shown_w, 0.0);
  }
  if (s.instant.next_ns <= s.t_ns && step(s.instant, d.power_instant, s, mean_w))
    show(s.instant, s.t_ns, noisy(s, d, mean_w, d.power_noise_cv));
  // Averaging takes the white part of the noise away.
  if (s.average.next_ns <= s.t_ns && step(s.average, d.power_average, s, mean_w))
    show(s.average, s.t_ns, noisy(s, d, mean_w, 0.0));
  if (s.energy_next_ns <= s.t_ns) {
    s.energy_shown_j = s.energy_j;
    s.energy_next_ns += d.energy_tick_ns;
  }
  if (s.utilization_next_ns <= s.t_ns) utilization_tick(s, d);
  if (s.gpm_next_ns <= s.t_ns) {
    s.gpm_shown = s.activity_integral;
    s.gpm_shown_ns = s.t_ns;
    s.gpm_next_ns += d.gpm_period_ns;
  }
}

}  // namespace gpoeo::twin
