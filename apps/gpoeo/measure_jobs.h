// SPDX-License-Identifier: Apache-2.0
// The lives of the job under a sweep: started, driven through the settings on a control thread,
// ended or started again.
#pragma once

#include <optional>
#include <string>

#include "control/child.h"
#include "control/sweep.h"
#include "guardian.h"
#include "measure.h"

namespace gpoeo::app {

struct SweptJob {
  const MeasureOptions& options;
  Backend& backend;
  control::Sweep& sweep;
  std::string rings;  // an empty folder for the progress rings of all lives
  std::optional<Guardian>& guardian;
  const control::BlockedSignals& signals;
};

// Until the sweep is over, whatever ended it. The exit code: 0 when it is complete, 128 + n after a
// signal, the job's own when that failed, else our own failure's. When the driver hangs it leaves
// the process, without unwinding.
int run_jobs(SweptJob job);

}  // namespace gpoeo::app
