// SPDX-License-Identifier: Apache-2.0
#include "backend.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "base/log.h"
#include "base/text.h"
#include "gpu/nvml/nvml_driver.h"
#include "twin/device_spec.h"

namespace gpoeo::app {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

// A twin that is up under that name, else a new one of that device, which goes with us.
Result<std::unique_ptr<twin::Segment>> find_or_make_twin(const BackendOptions& options,
                                                         bool& made) {
  made = false;
  // A device file is no twin that is up, whatever its mode.
  const bool device_file = options.twin.ends_with(".toml");
  auto running = device_file ? make_error(ErrorKind::kNotFound, options.twin)
                             : twin::Segment::attach(options.twin);
  if (running || running.error().kind != ErrorKind::kNotFound) return running;
  twin::SegmentOptions segment;
  // A file's name may hold any sign.
  for (const auto name :
       device_file ? std::vector<std::string_view>{options.twin} : split(options.twin, '+')) {
    auto device = twin::find_device(std::string(name));
    if (!device) {
      return make_error(device.error().kind,
                        fmt::format("{} (and no twin of that name is up)", device.error().text));
    }
    segment.cards.insert(segment.cards.end(), options.twin_cards, *device);
  }
  segment.speed = options.twin_speed;
  made = true;
  return twin::Segment::create(fmt::format("run-{}", ::getpid()), segment);
}

Result<Backend> open_on(std::unique_ptr<twin::Segment> segment, bool owns) {
  Backend backend;
  backend.segment = std::move(segment);
  backend.owns_segment = owns;
  GPOEO_TRY(backend.ref.library, twin_library());
  backend.ref.twin = backend.segment->path().string();
  backend.clock = &backend.segment->twin_clock();
  // Our own NVML client and every child find the same card by this name.
  ::setenv(twin::kSegmentEnvironment, backend.ref.twin.c_str(), 1);
  GPOEO_TRY(backend.driver, nvml::open_nvml({.library = backend.ref.library}, *backend.clock));
  return backend;
}

Result<Backend> open_real(const std::string& library) {
  Backend backend;
  backend.real_clock = std::make_unique<RealClock>();
  backend.clock = backend.real_clock.get();
  backend.ref.library = library;
  GPOEO_TRY(backend.driver, nvml::open_nvml({.library = library}, *backend.clock));
  return backend;
}

}  // namespace

Backend::~Backend() {
  driver.reset();
  if (!segment || !owns_segment) return;
  const std::string path = segment->path().string();
  if (Status removed = twin::Segment::remove(path, /*force=*/true); !removed) {
    log::warning("{}", removed.error().text);
  }
}

Result<std::string> twin_library() {
  if (auto named = environment("GPOEO_TWIN_LIBRARY"); named && !named->empty()) return *named;
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* relative :
       {"../lib/twin/libnvidia-ml.so.1", "../lib/gpoeo/twin/libnvidia-ml.so.1"}) {
    const fs::path candidate = (self / relative).lexically_normal();
    if (fs::exists(candidate, error)) return candidate.string();
  }
  return make_error(
      ErrorKind::kNotFound,
      fmt::format("the twin's libnvidia-ml.so.1 is not beside {}; build it, or name it "
                  "in GPOEO_TWIN_LIBRARY",
                  self.string()));
}

Result<Backend> open_backend(const BackendOptions& options) {
  BackendOptions wanted = options;
  if (wanted.twin.empty()) wanted.twin = environment(twin::kSegmentEnvironment).value_or("");
  if (wanted.twin.empty()) return open_real(nvml::NvmlOptions{}.library);
  bool made = false;
  GPOEO_TRY(auto segment, find_or_make_twin(wanted, made));
  return open_on(std::move(segment), made);
}

Result<Backend> open_backend(const control::DriverRef& ref) {
  if (ref.twin.empty()) return open_real(ref.library);
  GPOEO_TRY(auto segment, twin::Segment::attach(ref.twin));
  return open_on(std::move(segment), /*owns=*/false);
}

Result<OpenGpus> open_gpus(Backend& backend, const std::optional<std::string>& gpus_option,
                           gpu::Access access) {
  std::vector<gpu::DeviceIdentity> identities;
  for (unsigned i = 0; i < backend.driver->device_count(); ++i) {
    GPOEO_TRY(const auto device, backend.driver->open(i, gpu::Access::kReadOnly));
    identities.push_back(device->identity());
  }
  GPOEO_TRY(const gpu::Selection selection, gpu::select_gpus(gpus_option, environment, identities));
  if (selection.indices.empty()) {
    return make_error(ErrorKind::kNotFound,
                      fmt::format("no GPU to work with: {} selects none", selection.source));
  }
  OpenGpus open{.devices = {}, .source = selection.source, .warning = selection.warning};
  for (const unsigned index : selection.indices) {
    GPOEO_TRY(auto device, backend.driver->open(index, access));
    open.devices.push_back(std::move(device));
  }
  return open;
}

}  // namespace gpoeo::app
