// SPDX-License-Identifier: Apache-2.0
// What every verb that starts the user's job needs: the variables it gets, the guards over its
// GPUs, the guardian, and the wait for its end.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend.h"
#include "control/child.h"
#include "control/gpu_channel.h"
#include "guardian.h"
#include "injection.h"

namespace gpoeo::app {

// How long the driver may take to give the clocks back once the job is over. A driver that hangs
// must not keep the user's shell: the guardian goes on trying.
inline constexpr auto kRestorePatience = std::chrono::seconds(15);

// 127, 126 or our own failure's.
int exit_code_for_start(const Error& error);

// Where to write progress, the launch log, and, on a twin, the card that we see.
control::Child::Environment job_environment(const Backend& backend, const std::string& ring_dir,
                                            const Injection& injection);

struct JobWatch {
  // A signal came that ends jobs (not USR1 or USR2).
  std::function<void(int signal)> ending_signal = [](int) {};
  // Now and then, while the job runs; may signal the child.
  std::function<void(const control::Child& child)> tick = [](const control::Child&) {};
  std::chrono::milliseconds tick_every = std::chrono::hours(1);
};
// Waits for the job's end. Signals go on to the job, unless the terminal has sent them to it
// already. Thread rule: the main thread.
control::ExitStatus wait_for_job(control::Child& child, const JobWatch& watch = {});

// A guard for each GPU, into `inputs` (as many, in order), and the journal they write, which must
// outlive them. An error leaves no guard taken.
Result<std::unique_ptr<control::Journal>> take_guards(const Backend& backend, const OpenGpus& gpus,
                                                      std::vector<control::GpuInput>& inputs);

// For `gpus` whose clocks may be set; with `sets_clocks` false only for cleaning up behind us, or
// not at all when there is nothing to clean up.
Result<std::optional<Guardian>> start_guardian(const Backend& backend, const OpenGpus& gpus,
                                               bool sets_clocks, const std::string& ring_dir);

}  // namespace gpoeo::app
