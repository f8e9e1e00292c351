// SPDX-License-Identifier: Apache-2.0
// `gpoeo twin up`, `down`, `exec` and `fault`: twins that several programs share.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "backend.h"
#include "base/log.h"
#include "control/child.h"
#include "job_process.h"
#include "twin/card_front.h"
#include "twin/device_spec.h"
#include "twin_verbs.h"
#include "verb.h"

namespace gpoeo::app {
namespace {

Result<std::unique_ptr<twin::Segment>> make_segment(const TwinOptions& options,
                                                    const std::string& name) {
  GPOEO_TRY(const auto device, twin::find_device(options.device));
  twin::SegmentOptions segment;
  segment.cards.assign(options.cards, device);
  segment.speed = options.speed;
  return twin::Segment::create(name, segment);
}

// What a shell must set so that any NVML client sees the twin.
Result<control::Child::Environment> twin_environment(const twin::Segment& segment) {
  GPOEO_TRY(const std::string library, twin_library());
  const std::string folder = std::filesystem::path(library).parent_path().string();
  const char* before = std::getenv("LD_LIBRARY_PATH");
  return control::Child::Environment{
      {twin::kSegmentEnvironment, segment.path().string()},
      {"LD_LIBRARY_PATH", before != nullptr && *before != '\0' ? folder + ":" + before : folder}};
}

Result<ErrorKind> fault_kind(const std::string& name) {
  if (name == "permission") return ErrorKind::kNoPermission;
  if (name == "unsupported") return ErrorKind::kNotSupported;
  if (name == "lost") return ErrorKind::kDeviceLost;
  if (name == "timeout") return ErrorKind::kTimeout;
  if (name == "io") return ErrorKind::kIo;
  return make_error(
      ErrorKind::kInvalid,
      fmt::format("--kind '{}': there are permission, unsupported, lost, timeout, io", name));
}

Status inject(const TwinOptions& options) {
  GPOEO_TRY(const ErrorKind kind, fault_kind(options.kind));
  GPOEO_TRY(const auto segment, twin::Segment::attach(options.name));
  if (options.card >= segment->card_count()) {
    return make_error(ErrorKind::kInvalid,
                      fmt::format("--card {}: twin '{}' has {} card(s)", options.card, options.name,
                                  segment->card_count()));
  }
  const twin::CardFront front(*segment, options.card);
  if (!options.lost.empty()) GPOEO_TRY_STATUS(front.set_lost(options.lost == "on"));
  if (options.write > 0) GPOEO_TRY_STATUS(front.inject_write_failure(options.write, kind));
  return {};
}

}  // namespace

int twin_up(const TwinOptions& options) {
  const std::string name = options.name.empty() ? options.device : options.name;
  const auto segment = make_segment(options, name);
  if (!segment) return fail(segment.error(), kExitUsage);
  const auto variables = twin_environment(**segment);
  if (!variables) return fail(variables.error(), kExitOwnFailure);
  for (const auto& [variable, value] : *variables) fmt::print("export {}='{}'\n", variable, value);
  log::info("twin '{}' is up (simulated); 'gpoeo twin down {}' removes it", name, name);
  return kExitOk;
}

int twin_down(const TwinOptions& options) {
  if (Status removed = twin::Segment::remove(options.name, options.force); !removed) {
    return fail(removed.error(), kExitUsage);
  }
  return kExitOk;
}

// A command that sees a twin of its own for as long as it runs.
int twin_exec(const TwinOptions& options) {
  if (options.command.empty()) {
    return fail({ErrorKind::kInvalid, "no command: gpoeo twin exec a100 -- python client.py"},
                kExitUsage);
  }
  const control::BlockedSignals signals;
  const std::string name = fmt::format("exec-{}", ::getpid());
  auto segment = make_segment(options, name);
  if (!segment) return fail(segment.error(), kExitUsage);
  int code = kExitOwnFailure;
  if (const auto variables = twin_environment(**segment); !variables) {
    code = fail(variables.error(), kExitOwnFailure);
  } else if (auto child = control::Child::start(options.command, *variables, signals); !child) {
    code = fail(child.error(), exit_code_for_start(child.error()));
  } else {
    code = wait_for_job(*child).code;
  }
  const std::string path = (*segment)->path().string();
  segment->reset();
  if (Status removed = twin::Segment::remove(path, /*force=*/true); !removed) {
    log::warning("{}", removed.error().text);
  }
  return code;
}

int twin_fault(const TwinOptions& options) {
  if (Status injected = inject(options); !injected) return fail(injected.error(), kExitUsage);
  return kExitOk;
}

}  // namespace gpoeo::app
