// SPDX-License-Identifier: Apache-2.0
#include "job_process.h"

#include <signal.h>

#include <cstdlib>
#include <filesystem>

#include "twin/segment.h"
#include "verb.h"
#include "wire/progress_ring.h"

namespace gpoeo::app {

int exit_code_for_start(const Error& error) {
  if (error.kind == ErrorKind::kNotFound) return kExitNotFound;
  if (error.kind == ErrorKind::kNoPermission) return kExitNotExecutable;
  return kExitOwnFailure;
}

control::Child::Environment job_environment(const Backend& backend, const std::string& ring_dir,
                                            const Injection& injection) {
  control::Child::Environment added = {{wire::kRingDirEnv, ring_dir}};
  if (!injection.library.empty()) added.emplace_back(kInjectionEnv, injection.library);
  if (backend.simulated()) {
    // The job's own NVML clients (pynvml in a training script) must see the same card as we do.
    const std::string folder = std::filesystem::path(backend.ref.library).parent_path().string();
    const char* before = std::getenv("LD_LIBRARY_PATH");
    added.emplace_back("LD_LIBRARY_PATH", before != nullptr ? folder + ":" + before : folder);
    added.emplace_back(twin::kSegmentEnvironment, backend.ref.twin);
  }
  return added;
}

control::ExitStatus wait_for_job(control::Child& child, const JobWatch& watch) {
  for (;;) {
    const control::Wake wake = child.wait(watch.tick_every);
    if (wake.kind == control::Wake::Kind::kExited) return wake.exit;
    if (wake.kind != control::Wake::Kind::kSignal) {
      watch.tick(child);
      continue;
    }
    const bool ends_jobs = wake.signal != SIGUSR1 && wake.signal != SIGUSR2;
    if (ends_jobs) watch.ending_signal(wake.signal);
    // A terminal that hangs up tells its session's leader only, which may be us.
    if (!wake.from_terminal || wake.signal == SIGHUP) child.forward(wake.signal);
  }
}

Result<std::unique_ptr<control::Journal>> take_guards(const Backend& backend, const OpenGpus& gpus,
                                                      std::vector<control::GpuInput>& inputs) {
  GPOEO_TRY(auto opened, control::Journal::open(control::default_state_dir()));
  auto journal = std::make_unique<control::Journal>(std::move(opened));
  for (std::size_t i = 0; i < gpus.devices.size(); ++i) {
    auto guard = control::Guard::acquire(*gpus.devices[i], *journal, backend.ref);
    if (!guard) {
      for (auto& gpu : inputs) gpu.guard.reset();
      return std::unexpected(guard.error());
    }
    inputs[i].guard.emplace(std::move(*guard));
  }
  return journal;
}

Result<std::optional<Guardian>> start_guardian(const Backend& backend, const OpenGpus& gpus,
                                               bool sets_clocks, const std::string& ring_dir) {
  if (!sets_clocks && !backend.owns_segment) return std::optional<Guardian>{};
  GuardianCharge charge{.state_dir = control::default_state_dir().string(),
                        .uuids = {},
                        .ring_dir = ring_dir,
                        .twin_segment = {}};
  if (sets_clocks) {
    for (const auto& device : gpus.devices) charge.uuids.push_back(device->identity().uuid);
  }
  if (backend.owns_segment) charge.twin_segment = backend.ref.twin;
  GPOEO_TRY(Guardian guardian, Guardian::start(charge));
  return std::optional<Guardian>(std::move(guardian));
}

}  // namespace gpoeo::app
