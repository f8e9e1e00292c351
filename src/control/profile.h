// SPDX-License-Identifier: Apache-2.0
// What is known of a job's work at default clocks, before anything is tried: the model's features
// are made of it. Plain data.
#pragma once

#include <optional>
#include <string>

#include "base/activity.h"
#include "base/units.h"

namespace gpoeo::control {

enum class CounterOrigin {
  kNone,        // no counters: utilisation and power only
  kGpm,         // NVML's GPM, from outside the job's process
  kPmSampling,  // CUPTI PM sampling, from a process beside the job
  kTwinJob,     // a twin's job program, in place of CUPTI
};
std::string_view to_string(CounterOrigin origin);

// Means over whole iterations at default clocks, over all GPUs of the job.
struct Profile {
  Activity activity{};  // empty when `origin` is kNone
  CounterOrigin origin = CounterOrigin::kNone;
  std::string why;        // how it was chosen, and why not a better source; one line
  double iterations = 0;  // that the counters cover
  Seconds counted{};      // how long that took
  double remainder = 0;   // largest relative error because they were not whole
  bool recalled = false;  // not read anew: this work had been profiled before

  Seconds time{};                              // of one iteration
  Watts power{};                               // mean of one GPU
  std::optional<Watts> power_limit{};          // of one GPU
  std::optional<double> gpu_utilization{};     // 0..1, as the driver says it
  std::optional<double> memory_utilization{};  // 0..1
  std::optional<Hertz> sm_clock{};             // mean; below the highest when a cap binds
  std::optional<Hertz> memory_clock{};
  std::optional<double> host_share{};  // time without a kernel: 1 - gr_active, where that is known
};

}  // namespace gpoeo::control
