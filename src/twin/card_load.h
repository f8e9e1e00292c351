// SPDX-License-Identifier: Apache-2.0
// Inside the card core: power, heat and clocks between events. Only card*.cc include this.
#pragma once

#include <cstdint>

#include "twin/card.h"

namespace gpoeo::twin {

// Clocks that hold now, as a pair index into Work's tables.
inline int clock_pair(const Card& card) {
  return card.device.pair(card.state.memory, card.state.sm);
}

// Power with no job, at a clock pair; `idle`: clocks have fallen. Formula in card_load.cc.
double unloaded_power_w(const DeviceModel& device, int memory, int sm, bool idle);

// Closed forms over `dt_s` of constant load.
struct Span {
  double energy_j;
  double temperature_c;  // at its end
};
Span span(const CardState& state, const DeviceModel& device, double dt_s);

// Moves energies, activities and temperature to `t_ns`; the load does not change on the way.
void integrate(Card& card, std::int64_t t_ns);

// Works out clocks from locks, idleness and the governor; then what the running phases draw, show
// and when they end. To be called after anything that changes either.
void refresh(Card& card);
// The cheaper half of it, when only the phase of one job changed.
void refresh_load(Card& card);
// When `job`'s present phase ends at the present clocks.
void schedule_phase(Card& card, int slot);

// Whether the power cap can bind at all now; starts or stops its steps.
void arm_governor(Card& card);
void governor_step(Card& card);

// A clock command that has come due.
void step_sm_command(Card& card);
void step_memory_command(Card& card);

}  // namespace gpoeo::twin
