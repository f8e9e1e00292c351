// SPDX-License-Identifier: Apache-2.0
#include "twin/card_load.h"

#include <algorithm>
#include <cmath>

namespace gpoeo::twin {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// Relative to default: f V^2, what clock trees and switching logic draw.
double switching(const DeviceModel& d, int sm) {
  const auto voltage = [&](double mhz) {
    const double top = d.sm_mhz[at(d.sm_clock_count - 1)];
    if (mhz <= d.voltage_floor_mhz || top <= d.voltage_floor_mhz) return d.voltage_floor_v;
    return d.voltage_floor_v + (d.voltage_max_v - d.voltage_floor_v) * (mhz - d.voltage_floor_mhz) /
                                   (top - d.voltage_floor_mhz);
  };
  const double f = d.sm_mhz[at(sm)], f0 = d.sm_mhz[at(d.default_sm)];
  const double v = voltage(f), v0 = voltage(f0);
  return f / f0 * (v * v) / (v0 * v0);
}

// Duration of a slot's present phase at the present clocks when it runs alone.
double phase_duration(const JobSlot& job, const Work& work, int pair) {
  const Variant& variant = work.variants[at(job.variant)];
  const int phase = variant.first + job.phase;
  const bool scaled = work.phases[at(phase)].kind == PhaseKind::kKernel;
  return work.point(phase, pair).duration_s * job.scale * (scaled ? job.length_scale : 1.0);
}

void set_unloaded(Card& card) {
  CardState& s = card.state;
  s.work_w = unloaded_power_w(card.device, s.memory, s.sm, s.idle != 0);
  s.mean_work_w = s.work_w;
  s.busy = 0.0;
  s.activity.fill(0.0);
}

}  // namespace

// Idle: the settled idle power less what a slower memory clock saves. Clocks up without work:
// `active_w` of clock trees on top, scaled by f V^2 (seen on the Titan X: idle power at fixed
// clocks rises with the SM clock in that shape).
double unloaded_power_w(const DeviceModel& device, int memory, int sm, bool idle) {
  const double base = device.idle_w - device.memory_idle_saving_w[at(memory)];
  if (idle && sm == device.idle_sm) return base;
  return base + device.active_w * (switching(device, sm) - switching(device, device.idle_sm));
}

// tau dx/dt = R (P - P_mean) + (R k - 1) x, with x = T - T_ss and power P + k x.
Span span(const CardState& s, const DeviceModel& d, double dt_s) {
  const double r = d.thermal_k_per_w, k = d.leakage_w_per_k;
  const double steady = d.ambient_c + r * s.mean_work_w;
  const double damping = 1.0 - r * k;
  const double rest = r * (s.work_w - s.mean_work_w) / damping;
  const double rate = damping / d.thermal_tau_s;
  const double x0 = s.temperature_c - steady;
  const double fallen = -std::expm1(-rate * dt_s);
  const double x_integral = rest * dt_s + (x0 - rest) * fallen / rate;
  return {s.work_w * dt_s + k * x_integral, steady + rest + (x0 - rest) * (1.0 - fallen)};
}

void integrate(Card& card, std::int64_t t_ns) {
  CardState& s = card.state;
  if (t_ns <= s.t_ns) return;
  const double dt = static_cast<double>(t_ns - s.t_ns) * 1e-9;
  const Span moved = span(s, card.device, dt);
  s.energy_j += moved.energy_j;
  if (s.running > 0) {
    s.shared_energy_j += moved.energy_j / s.running;
    s.busy_integral_s += s.busy * dt;
    for (std::size_t i = 0; i < s.activity.size(); ++i)
      s.activity_integral[i] += s.activity[i] * dt;
  }
  s.temperature_c = moved.temperature_c;
  s.t_ns = t_ns;
}

void schedule_phase(Card& card, int slot) {
  CardState& s = card.state;
  JobSlot& job = s.jobs[at(slot)];
  job.phase_duration_s = phase_duration(job, *card.works[at(slot)], clock_pair(card));
  job.marked_ns = s.t_ns;
  const double ns = job.left * job.phase_duration_s * s.running * 1e9;
  job.phase_end_ns = s.t_ns + std::llround(ns);
}

void refresh_load(Card& card) {
  CardState& s = card.state;
  if (s.running == 0) return set_unloaded(card);
  const int pair = clock_pair(card);
  const double share = 1.0 / s.running;
  double work_w = 0, mean_w = 0, busy = 0;
  s.activity.fill(0.0);
  for (int i = 0; i < kMaxJobs; ++i) {
    const JobSlot& job = s.jobs[at(i)];
    if (job.state != JobPhaseState::kRunning) continue;
    const Work& work = *card.works[at(i)];
    const PhasePoint& point = work.point(work.variants[at(job.variant)].first + job.phase, pair);
    const double drift = 1.0 + job.power_drift;
    work_w += share * drift * static_cast<double>(point.power_w);
    mean_w += share * drift * static_cast<double>(work.mean_power_w[at(job.stage)][at(pair)]);
    busy += share * static_cast<double>(point.busy);
    for (std::size_t a = 0; a < s.activity.size(); ++a)
      s.activity[a] += share * static_cast<double>(point.activity[a]);
  }
  s.work_w = work_w;
  s.mean_work_w = mean_w;
  s.busy = busy;
}

void refresh(Card& card) {
  CardState& s = card.state;
  const DeviceModel& d = card.device;
  // How far each phase has come at the clocks and the sharing that held until now.
  for (JobSlot& job : s.jobs) {
    if (job.state != JobPhaseState::kRunning) continue;
    const double whole = static_cast<double>(job.phase_end_ns - job.marked_ns);
    if (whole > 0)
      job.left *= std::clamp(static_cast<double>(job.phase_end_ns - s.t_ns) / whole, 0.0, 1.0);
  }
  s.memory = s.idle ? std::clamp(d.idle_memory, s.force_memory_low, s.force_memory_high)
                    : s.force_memory_low;
  const int first = d.sm_first[at(s.memory)];
  const int last = first + d.sm_number[at(s.memory)] - 1;
  const int wanted = s.idle ? std::clamp(d.idle_sm, s.force_sm_low, s.force_sm_high)
                            : s.force_sm_high - s.governor_steps;
  s.sm = std::clamp(wanted, first, last);
  refresh_load(card);
  for (int i = 0; i < kMaxJobs; ++i)
    if (s.jobs[at(i)].state == JobPhaseState::kRunning) schedule_phase(card, i);
}

void arm_governor(Card& card) {
  CardState& s = card.state;
  const DeviceModel& d = card.device;
  const int first = d.sm_first[at(s.force_memory_low)];
  const int wanted =
      std::clamp(s.force_sm_high, first, first + d.sm_number[at(s.force_memory_low)] - 1);
  const int pair = d.pair(s.force_memory_low, wanted);
  double peak_w = 0;
  for (int i = 0; i < kMaxJobs; ++i) {
    const JobSlot& job = s.jobs[at(i)];
    if (job.state != JobPhaseState::kRunning) continue;
    const Work& work = *card.works[at(i)];
    if (work.cap_included[at(job.stage)] && s.power_limit_w >= d.limit_default_w) continue;
    peak_w = std::max(peak_w, static_cast<double>(work.peak_power_w[at(job.stage)][at(pair)]));
  }
  // 5 %: leakage of a hot card and drift can lift a phase that far over its table.
  const bool needed = d.limit_step_w <= 0 && s.running > 0 && peak_w > 0.95 * s.power_limit_w;
  if (needed && s.governor_next_ns == kNever) {
    s.governor_next_ns = s.t_ns + d.governor_period_ns;
    s.governor_mark_ns = s.t_ns;
    s.governor_mark_j = s.energy_j;
    s.governor_filtered_w = power_at(card, instant_from_ns(s.t_ns));
  } else if (!needed && s.governor_next_ns != kNever) {
    s.governor_next_ns = kNever;
    s.capped = 0;
    if (s.governor_steps != 0) {
      s.governor_steps = 0;
      refresh(card);
    }
  }
}

// Looks at power filtered over `governor_filter_s`. Over the limit: down by one step for each 1 %
// over, at most eight. Under it by the margin: up by one. Real governors are not public; this one
// holds the limit in the mean within a few steps and dithers around it, as an H200 at its cap does.
void governor_step(Card& card) {
  CardState& s = card.state;
  const DeviceModel& d = card.device;
  const double period_s = static_cast<double>(s.t_ns - s.governor_mark_ns) * 1e-9;
  if (period_s > 0) {
    const double mean_w = (s.energy_j - s.governor_mark_j) / period_s;
    const double weight = 1.0 - std::exp(-period_s / d.governor_filter_s);
    s.governor_filtered_w += weight * (mean_w - s.governor_filtered_w);
  }
  s.governor_mark_ns = s.t_ns;
  s.governor_mark_j = s.energy_j;
  s.governor_next_ns = s.t_ns + d.governor_period_ns;
  const double over = s.governor_filtered_w - s.power_limit_w;
  const int before = s.governor_steps;
  if (over > 0) {
    const int steps = 1 + static_cast<int>(over / (0.01 * s.power_limit_w));
    s.governor_steps = std::min(before + std::min(steps, 8), std::max(0, s.force_sm_high));
    s.capped = 1;
  } else if (before > 0 && over < -d.governor_margin_w) {
    s.governor_steps = before - 1;
  }
  if (s.governor_steps == 0) s.capped = over > 0 ? 1 : 0;
  if (s.governor_steps != before) refresh(card);
}

namespace {

// Half the way when the latency is over, the rest when it has settled.
void step_command(ClockCommand& command, std::int32_t& low, std::int32_t& high,
                  std::int64_t settle_ns) {
  if (command.step == 1 && settle_ns > 0) {
    low = (low + command.low) / 2;
    high = std::max(low, (high + command.high) / 2);
    command.step = 2;
    command.due_ns += settle_ns;
    return;
  }
  low = command.low;
  high = command.high;
  command.step = 0;
  command.due_ns = kNever;
}

}  // namespace

void step_sm_command(Card& card) {
  CardState& s = card.state;
  step_command(s.sm_command, s.force_sm_low, s.force_sm_high, card.device.clock_settle_ns);
  s.governor_steps = 0;  // the governor starts again from the new bound
  s.capped = 0;
  refresh(card);
  arm_governor(card);
}

void step_memory_command(Card& card) {
  CardState& s = card.state;
  step_command(s.memory_command, s.force_memory_low, s.force_memory_high, 0);
  refresh(card);
  arm_governor(card);
}

}  // namespace gpoeo::twin
