// SPDX-License-Identifier: Apache-2.0
// Runs one simulated job on the card of the segment that GPOEO_TWIN names, and writes its launches
// and steps into the progress ring.
#pragma once

#include "base/result.h"
#include "job_options.h"

namespace gpoeo::twin_job {

// Prints the names of the jobs that the card can run.
Status list_jobs(const JobOptions& options);
// Returns when all iterations are done.
Status run_job(const JobOptions& options);

}  // namespace gpoeo::twin_job
