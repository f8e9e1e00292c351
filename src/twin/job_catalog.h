// SPDX-License-Identifier: Apache-2.0
// The jobs that are shipped: workloads of the measured response tables (for the device they were
// measured on) and analytic job files (for any device).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "twin/compile.h"

namespace gpoeo::twin {

struct JobEntry {
  std::string name;
  bool measured = false;  // else analytic
  std::string source;     // file
};

// What `device_key` ("a100") can run, sorted by name.
Result<std::vector<JobEntry>> jobs_for(std::string_view device_key);
// By name, case ignored, or as "SUITE/JOB" from a suite (job_suite.h); kNotFound lists what there is.
Result<JobSpec> find_job(std::string_view device_key, std::string_view name);

}  // namespace gpoeo::twin
