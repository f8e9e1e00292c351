// SPDX-License-Identifier: Apache-2.0
// What a compiled job costs at a clock pair once everything has settled: clocks, heat and, where
// the power cap binds, its governor. The truth, for judges and for making tables, never for a
// policy. Thread rule: pure.
#pragma once

#include <array>
#include <vector>

#include "twin/device_model.h"
#include "twin/work.h"

namespace gpoeo::twin {

// Per iteration of one stage, without chance (jitter, drift, lengths), at thermal balance.
struct SteadyPoint {
  int memory = 0, sm = 0;  // the lock's upper bounds, as indices into the device's clocks
  double iteration_s = 0;
  double power_w = 0;                             // mean
  std::array<double, kActivityCount> activity{};  // mean: what GPM or DCGM would show
  double sm_mhz = 0;                              // mean that ran; lower where the cap binds
  bool capped = false;
  double energy_j() const { return iteration_s * power_w; }
};

// With the clocks locked to at most [memory, sm]; `sm` among those that go with `memory`. Exact
// where the device's default power limit cannot bind; else the job is run through the card core for
// a few hundred simulated seconds, which costs some milliseconds.
SteadyPoint steady_point(const Work& work, const DeviceModel& device, int stage, int memory,
                         int sm);
// At the driver's own clocks.
SteadyPoint steady_default(const Work& work, const DeviceModel& device, int stage);
// At every clock pair that the device has: memory clocks descending, SM clocks ascending.
std::vector<SteadyPoint> steady_response(const Work& work, const DeviceModel& device, int stage);

// A stage run through the card core, as sums over its last iterations.
struct SteadyRun {
  double iterations = 0, seconds = 0, joules = 0;
  double reference_s = 0, reference_j = 0;  // what the job's references say of the same iterations
  std::array<double, kActivityCount> activity{};  // mean
  double sm_mhz = 0;                              // mean
};
SteadyRun run_steadily(const Work& work, const DeviceModel& device, int stage, int memory, int sm);

}  // namespace gpoeo::twin
