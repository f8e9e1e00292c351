// SPDX-License-Identifier: Apache-2.0
// What gpoeo-twin-job is asked to do.
#pragma once

#include <cstdint>
#include <string>

namespace gpoeo::twin_job {

struct JobOptions {
  std::string job;     // name of a shipped job
  std::string file;    // or a job file of one's own
  double seconds = 0;  // length at default clocks, twin time; 0: use iterations
  std::int64_t iterations = 0;
  std::uint64_t seed = 1;
  double iteration_s = 0;  // 0: the job's own
  int card = -1;           // -1: the first of CUDA_VISIBLE_DEVICES, else 0
  // What goes into the progress ring: "launches" (as the injected library logs an unmodified job),
  // "steps" (as a job that calls step()), "both" or "none".
  std::string progress = "launches";
  bool steady = false;  // no jitter, no drift
  bool list = false;
  double crash_after_s = 0;  // abort() after so much twin time; 0: never
};

}  // namespace gpoeo::twin_job
