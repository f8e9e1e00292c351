// SPDX-License-Identifier: Apache-2.0
// A small process beside `gpoeo run` that gives the clocks back when gpoeo itself is killed.
//
// It waits on a pipe whose other end only gpoeo has. A goodbye byte means that all was restored;
// the end of the pipe without one means that gpoeo died: then the guardian restores from the
// journal, trying again while the driver does not answer, removes the progress rings, and, when the
// job has ended too, the twin that gpoeo had made. It writes to guardian.log in the state folder.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "verb.h"

namespace gpoeo::app {

struct GuardianCharge {
  std::string state_dir;
  std::vector<std::string> uuids;
  std::string ring_dir;
  std::string twin_segment;  // to remove at the end; empty: none of ours
};

class Guardian {
 public:
  // Call before other threads start.
  static Result<Guardian> start(const GuardianCharge& charge);
  Guardian(Guardian&&) noexcept = default;
  Guardian& operator=(Guardian&&) = delete;
  // Sends the goodbye (everything is restored) and reaps it.
  void dismiss();
  // Tells it the job's process, for cleaning up behind it.
  void watch_job(pid_t job);

 private:
  Guardian(pid_t pid, Fd pipe) : pid_(pid), pipe_(std::move(pipe)) {}
  pid_t pid_;
  Fd pipe_;
};

}  // namespace gpoeo::app
