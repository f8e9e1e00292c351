// SPDX-License-Identifier: Apache-2.0
// One job under one policy: the real control loop, telemetry and sensors' habits on a simulated
// card on virtual time, and what the judge says of it.
//
// Thread rule: run_one() may run on many threads at once; each call has a card, a clock and a state
// folder of its own. Same arguments, same result.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/priors.h"
#include "bench/suite.h"
#include "bench/truth.h"
#include "policy/policy.h"
#include "report/session.h"

namespace gpoeo::bench {

// How the job's progress is known: each iteration's end, as from its launches; the power trace
// alone; not at all.
enum class Progress { kLaunches, kTraces, kNone };
// Power samples each 20 ms of a window as long (DESIGN section 11, as an H200's), or what the
// card's own sensors do (its device file).
enum class Sensors { kFine, kDevice };

struct RunOptions {
  double max_slowdown = 0.05;
  policy::Objective objective = policy::Objective::kEnergy;
  double cost_eta = 0.5;
  Progress progress = Progress::kLaunches;
  bool counters = true;  // activity counters as GPM shows them, those that the job's table has
  control::Predict predict{};  // the model; empty: none. Set for each run.
  Sensors sensors = Sensors::kFine;
  bool warm_card = true;    // the same work ran before, as long as it takes to come to its heat
  double job_s = 1800;      // at default clocks
  double noise_scale = 1;   // of all noise below and of the sensors'
  double jitter_cv = 0.02;  // of an iteration's time (DESIGN section 11)
  double drift_sigma = 0.003;
  std::uint64_t seed = 0;
  std::filesystem::path state_dir;  // exists; for the guards' journals
};

// One setting that was asked for.
struct Step {
  double at_s = 0;
  policy::Purpose purpose{};
  policy::ClockSetting setting{};
  bool new_work = false;  // decided without anything known of the work
  std::string why;
};

struct RunResult {
  double net_saving = 0, net_slowdown = 0;
  double steady_saving = 0, steady_slowdown = 0;  // the truth at what is held
  policy::ClockSetting held{};
  std::optional<double> time_to_hold_s;
  unsigned clock_writes = 0;
  double iteration_s = 0;  // at default clocks
  std::int64_t iterations = 0;
  double simulated_s = 0;
  // After each change of work: from it until a setting was held that was chosen for the new work;
  // nullopt: that never came.
  std::vector<std::optional<double>> resettled_s;
  std::vector<Step> steps;
  report::Session session;  // what the run itself says of all this
};

// A stretch of a run: `truth` is `subject`'s on the run's device.
struct Leg {
  const Subject* subject = nullptr;
  const Truth* truth = nullptr;
};

// The work of each leg in turn, in equal parts of the job's length (at most four; several only for
// measured jobs). Steady figures are the last leg's. kInvalid for legs that cannot be put together.
Result<RunResult> run_one(const std::vector<Leg>& legs, const twin::DeviceModel& device,
                          const policy::Policy& policy, const RunOptions& options);

// Length of an iteration at default clocks: 0.05 to 3 s, even in the logarithm, by workload and
// seed (DESIGN section 11).
double iteration_period_s(const std::string& workload, std::uint64_t seed);

}  // namespace gpoeo::bench
