// SPDX-License-Identifier: Apache-2.0
#include "twin/card.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "twin/card_jobs.h"
#include "twin/card_load.h"
#include "twin/card_sensors.h"

namespace gpoeo::twin {
namespace {

std::int64_t next_event(const CardState& s) {
  std::int64_t next = std::min({next_sensor_event(s), s.sm_command.due_ns, s.memory_command.due_ns,
                                s.governor_next_ns, s.idle_due_ns});
  if (s.running > 0)
    for (const JobSlot& job : s.jobs)
      if (job.state == JobPhaseState::kRunning) next = std::min(next, job.phase_end_ns);
  return next;
}

// Everything due at t_ns, in a fixed order, each once: what becomes due again at the same instant
// (a phase of no length) is the next event.
void do_events(Card& card) {
  CardState& s = card.state;
  for (int i = 0; i < kMaxJobs; ++i) {
    const JobSlot& job = s.jobs[static_cast<std::size_t>(i)];
    if (job.state == JobPhaseState::kRunning && job.phase_end_ns <= s.t_ns) end_phase(card, i);
  }
  if (s.sm_command.due_ns <= s.t_ns) step_sm_command(card);
  if (s.memory_command.due_ns <= s.t_ns) step_memory_command(card);
  if (s.idle_due_ns <= s.t_ns) {
    s.idle_due_ns = kNever;
    s.idle = 1;
    refresh(card);
  }
  if (s.governor_next_ns <= s.t_ns) governor_step(card);
  if (next_sensor_event(s) <= s.t_ns) sensor_events(s, card.device);
}

void order(ClockCommand& command, int low, int high, const Card& card) {
  command.step = 1;
  command.low = low;
  command.high = high;
  command.due_ns = card.state.horizon_ns + card.device.clock_latency_ns;
}

}  // namespace

void initialize(CardState& s, const DeviceModel& d, std::uint64_t seed, Instant now) {
  // Padding too: the bytes of two equal states are equal.
  std::memset(static_cast<void*>(&s), 0, sizeof s);
  s.seed = seed;
  s.random = make_random(seed);
  s.start_ns = s.t_ns = s.horizon_ns = to_unix_ns(now);
  s.sm_low = s.force_sm_low = 0;
  s.sm_high = s.force_sm_high = d.default_sm;
  s.memory_low = s.force_memory_low = 0;
  s.memory_high = s.force_memory_high = d.memory_clock_count - 1;
  s.sm_command.due_ns = s.memory_command.due_ns = kNever;
  s.governor_next_ns = s.idle_due_ns = kNever;
  s.power_limit_w = d.limit_default_w;
  s.idle = 1;
  Card card{s, d, {}, {}};
  refresh(card);
  s.temperature_c = d.ambient_c + d.thermal_k_per_w * s.work_w;
  initialize_sensors(s, d);
}

void advance(Card& card, Instant to) {
  CardState& s = card.state;
  const std::int64_t to_ns = to_unix_ns(to);
  if (to_ns <= s.horizon_ns) return;
  for (std::int64_t next = next_event(s); next <= to_ns; next = next_event(s)) {
    integrate(card, next);
    do_events(card);
  }
  s.horizon_ns = to_ns;
}

void command_sm_lock(Card& card, int low, int high) {
  CardState& s = card.state;
  s.sm_locked = 1;
  s.sm_low = low;
  s.sm_high = high;
  ++s.clock_writes;
  order(s.sm_command, low, high, card);
}

void command_sm_reset(Card& card) {
  CardState& s = card.state;
  s.sm_locked = 0;
  s.sm_low = 0;
  s.sm_high = card.device.default_sm;
  ++s.clock_writes;
  order(s.sm_command, s.sm_low, s.sm_high, card);
}

void command_memory_lock(Card& card, int low, int high) {
  CardState& s = card.state;
  s.memory_locked = 1;
  s.memory_low = low;
  s.memory_high = high;
  ++s.clock_writes;
  order(s.memory_command, low, high, card);
}

void command_memory_reset(Card& card) {
  CardState& s = card.state;
  s.memory_locked = 0;
  s.memory_low = 0;
  s.memory_high = card.device.memory_clock_count - 1;
  ++s.clock_writes;
  order(s.memory_command, s.memory_low, s.memory_high, card);
}

void command_power_limit(Card& card, double limit_w) {
  CardState& s = card.state;
  integrate(card, s.horizon_ns);
  s.power_limit_w = limit_w;
  const DeviceModel& d = card.device;
  if (d.limit_step_w > 0) {
    const auto step = static_cast<int>(std::lround((limit_w - d.limit_min_w) / d.limit_step_w));
    order(s.sm_command, 0, std::clamp(step, 0, d.default_sm), card);
    return;
  }
  arm_governor(card);
}

double energy_at(const Card& card, Instant t) {
  const double dt_s = static_cast<double>(to_unix_ns(t) - card.state.t_ns) * 1e-9;
  return card.state.energy_j + span(card.state, card.device, std::max(0.0, dt_s)).energy_j;
}

double temperature_at(const Card& card, Instant t) {
  const double dt_s = static_cast<double>(to_unix_ns(t) - card.state.t_ns) * 1e-9;
  return span(card.state, card.device, std::max(0.0, dt_s)).temperature_c;
}

double power_at(const Card& card, Instant t) {
  const CardState& s = card.state;
  const DeviceModel& d = card.device;
  const double steady_c = d.ambient_c + d.thermal_k_per_w * s.mean_work_w;
  return s.work_w + d.leakage_w_per_k * (temperature_at(card, t) - steady_c);
}

}  // namespace gpoeo::twin
