// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <initializer_list>
#include <utility>

namespace gpoeo::nvml {
namespace {

// The first of `names` (newest form first) that the library has.
template <typename Pointer>
void resolve(void* library, Pointer& target, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (void* symbol = dlsym(library, name)) {
      target = reinterpret_cast<Pointer>(symbol);
      return;
    }
  }
}

Getters resolve_getters(void* lib) {
  Getters g;
  resolve(lib, g.init, {"nvmlInit_v2", "nvmlInit"});
  resolve(lib, g.shutdown, {"nvmlShutdown"});
  resolve(lib, g.error_string, {"nvmlErrorString"});
  resolve(lib, g.driver_version, {"nvmlSystemGetDriverVersion"});
  resolve(lib, g.count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"});
  resolve(lib, g.handle_by_index, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
  resolve(lib, g.name, {"nvmlDeviceGetName"});
  resolve(lib, g.uuid, {"nvmlDeviceGetUUID"});
  resolve(lib, g.pci_info, {"nvmlDeviceGetPciInfo_v3"});
  resolve(lib, g.compute_capability, {"nvmlDeviceGetCudaComputeCapability"});
  resolve(lib, g.mig_mode, {"nvmlDeviceGetMigMode"});

  resolve(lib, g.samples, {"nvmlDeviceGetSamples"});
  resolve(lib, g.field_values, {"nvmlDeviceGetFieldValues"});
  resolve(lib, g.power_usage, {"nvmlDeviceGetPowerUsage"});
  resolve(lib, g.energy, {"nvmlDeviceGetTotalEnergyConsumption"});
  resolve(lib, g.clock_info, {"nvmlDeviceGetClockInfo"});
  resolve(lib, g.utilization, {"nvmlDeviceGetUtilizationRates"});
  resolve(lib, g.temperature, {"nvmlDeviceGetTemperature"});
  // Renamed in driver 535.
  resolve(lib, g.event_reasons,
          {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  resolve(lib, g.memory_clocks, {"nvmlDeviceGetSupportedMemoryClocks"});
  resolve(lib, g.graphics_clocks, {"nvmlDeviceGetSupportedGraphicsClocks"});
  resolve(lib, g.limit_constraints, {"nvmlDeviceGetPowerManagementLimitConstraints"});
  resolve(lib, g.default_limit, {"nvmlDeviceGetPowerManagementDefaultLimit"});
  resolve(lib, g.set_limit, {"nvmlDeviceGetPowerManagementLimit"});
  resolve(lib, g.enforced_limit, {"nvmlDeviceGetEnforcedPowerLimit"});
  resolve(lib, g.processes,
          {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"});
  resolve(lib, g.processes_v1, {"nvmlDeviceGetComputeRunningProcesses"});

  resolve(lib, g.gpm_support, {"nvmlGpmQueryDeviceSupport"});
  resolve(lib, g.gpm_alloc, {"nvmlGpmSampleAlloc"});
  resolve(lib, g.gpm_free, {"nvmlGpmSampleFree"});
  resolve(lib, g.gpm_sample, {"nvmlGpmSampleGet"});
  resolve(lib, g.gpm_metrics, {"nvmlGpmMetricsGet"});

  resolve(lib, g.twin_version, {"gpoeoTwinVersion"});
  resolve(lib, g.twin_locked_clocks, {"gpoeoTwinDeviceGetLockedClocks"});
  resolve(lib, g.twin_now, {"gpoeoTwinNow"});
  return g;
}

struct Meaning {
  ErrorKind kind;
  std::string_view cure;
};

Meaning meaning_of(abi::Return code) {
  switch (code) {
    case abi::kInvalidArgument:
    case abi::kFreqNotSupported:
      return {ErrorKind::kInvalid, ""};
    case abi::kNotSupported:
    case abi::kDeprecated:
    case abi::kArgumentVersionMismatch:
    case abi::kResetTypeNotSupported:
    case abi::kVgpuEccNotSupported:
      return {ErrorKind::kNotSupported, ""};
    case abi::kFunctionNotFound:
      return {ErrorKind::kNotSupported, "a newer NVIDIA driver has it"};
    case abi::kNoPermission:
      return {ErrorKind::kNoPermission,
              "run as root (in a container, with CAP_SYS_ADMIN), or let the gpoeo daemon do it"};
    case abi::kOperatingSystem:
      return {ErrorKind::kNoPermission,
              "the GPU's device file is blocked, often by a container's cgroup: give the container "
              "the device again"};
    case abi::kNotFound:
    case abi::kGpuNotFound:
    case abi::kLibraryNotFound:
      return {ErrorKind::kNotFound, ""};
    case abi::kDriverNotLoaded:
      return {ErrorKind::kDeviceLost, "load the driver (modprobe nvidia), then check nvidia-smi"};
    case abi::kLibRmVersionMismatch:
      return {ErrorKind::kDeviceLost,
              "the driver was upgraded under a running kernel module: reboot or reload it"};
    case abi::kGpuIsLost:
      return {ErrorKind::kDeviceLost, "the GPU fell off the bus: see dmesg for Xid, then reset it"};
    case abi::kResetRequired:
      return {ErrorKind::kDeviceLost, "nvidia-smi --gpu-reset, when no job uses it"};
    case abi::kTimeout:
      return {ErrorKind::kTimeout, ""};
    case abi::kInUse:
    case abi::kNoData:
    case abi::kNotReady:
    case abi::kInvalidState:
      return {ErrorKind::kBusy, ""};
    case abi::kUninitialized:
      return {ErrorKind::kIo, "open the driver again in this process (NVML does not survive fork)"};
    case abi::kUnknown:
      return {ErrorKind::kIo,
              "in a container this often means that it lost access to the GPU after 'systemctl "
              "daemon-reload': restart it"};
    default:
      return {ErrorKind::kIo, ""};
  }
}

}  // namespace

Library::Library(void* handle, std::string path)
    : handle_(handle), path_(std::move(path)), getters_(resolve_getters(handle)) {}

Result<Library> Library::open(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    return make_error(ErrorKind::kNotFound,
                      fmt::format("cannot load {}: {}; install the NVIDIA driver, or use a "
                                  "simulated GPU with --twin",
                                  path, reason != nullptr ? reason : "unknown reason"));
  }
  Library library(handle, path);
  const Getters& g = library.get();
  if (g.init == nullptr || g.shutdown == nullptr || g.count == nullptr ||
      g.handle_by_index == nullptr) {
    return make_error(ErrorKind::kNotSupported,
                      fmt::format("{} is not an NVML library: it lacks nvmlInit, nvmlShutdown, "
                                  "nvmlDeviceGetCount or nvmlDeviceGetHandleByIndex",
                                  path));
  }
  return library;
}

Setters Library::setters() const {
  Setters s;
  resolve(handle_, s.lock_sm, {"nvmlDeviceSetGpuLockedClocks"});
  resolve(handle_, s.reset_sm, {"nvmlDeviceResetGpuLockedClocks"});
  resolve(handle_, s.lock_memory, {"nvmlDeviceSetMemoryLockedClocks"});
  resolve(handle_, s.reset_memory, {"nvmlDeviceResetMemoryLockedClocks"});
  resolve(handle_, s.set_limit, {"nvmlDeviceSetPowerManagementLimit"});
  return s;
}

Status Library::check(abi::Return code, std::string_view what, std::string_view call) const {
  if (code == abi::kSuccess) return {};
  const char* message = getters_.error_string != nullptr ? getters_.error_string(code) : nullptr;
  const Meaning meaning = meaning_of(code);
  std::string text = fmt::format("{}: {}: {} (NVML error {})", what, call,
                                 message != nullptr ? message : "failed", static_cast<int>(code));
  if (!meaning.cure.empty()) text += fmt::format("; {}", meaning.cure);
  return make_error(meaning.kind, std::move(text));
}

std::unexpected<Error> Library::missing(std::string_view what, std::string_view call) const {
  return make_error(
      ErrorKind::kNotSupported,
      fmt::format("{}: {} is not in {}; a newer NVIDIA driver may have it", what, call, path_));
}

}  // namespace gpoeo::nvml
