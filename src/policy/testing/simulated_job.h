// SPDX-License-Identifier: Apache-2.0
// A job on a card, as a policy sees it: windows of iterations with DESIGN section 11's noise, from
// a response to the SM clock that only the test knows. No device, no control loop: seconds of
// training cost microseconds, so that a policy is tried over many seeds.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "policy/policy.h"

namespace gpoeo::policy::testing {

// What the card does when asked for a clock. Ratios over the default clocks.
struct Reply {
  double time = 1;
  double power = 1;
  bool held = true;
};
using Response = std::function<Reply(const ClockSetting&)>;  // never asked for the default
Response of_sm_clock(std::function<Reply(Hertz)> reply);

struct Noise {
  double time_cv = 0.02;       // of single iterations
  double drift_sigma = 0.003;  // AR(1), of time and of power, each its own
  double drift_tau_s = 60;
  double power_cv = 0.01;  // of power samples 20 ms apart
};

struct Run {
  double job_s = 600;        // at default clocks
  double iteration_s = 0.2;  // at default clocks
  double settle_s = 0.6;     // after each clock write nothing is measured
  std::uint64_t seed = 1;
  Noise noise{};
};

struct Outcome {
  std::vector<Decision> decisions;
  std::vector<Observation> observations;
  std::optional<std::size_t> settled_after;  // decisions before the first kHold or kLeave
  double settled_at_s = 0;
  ClockSetting held{};                            // at the job's end
  double steady_saving = 0, steady_slowdown = 0;  // true, there
  double net_saving = 0, net_slowdown = 0;        // of the whole job, without noise
  unsigned clock_writes = 0;
};

Outcome simulate(const Policy& policy, const Problem& problem, const Response& response,
                 const Run& run);

// The best setting within the limit, from the truth.
struct Best {
  ClockSetting setting{};
  double saving = 0;
};
Best oracle(const Problem& problem, const Response& response);

// 210, 225 ... 1410 MHz, as an A100 lists them.
std::vector<Hertz> a100_clocks();

}  // namespace gpoeo::policy::testing
