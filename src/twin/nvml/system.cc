// SPDX-License-Identifier: Apache-2.0
// Library life, versions, error texts.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/file.h"
#include "twin/nvml/front.h"

using namespace gpoeo::nvml_abi;
using namespace gpoeo::twin;
using namespace gpoeo::twin::front;

namespace {

// NVML's flag not to fail when there is no GPU.
constexpr unsigned kInitNoGpus = 1;
// What driver 580 reports; the twin runs no CUDA.
constexpr int kCudaVersion = 13000;

Return started(bool needs_gpus) noexcept {
  try {
    return start(needs_gpus);
  } catch (...) {
    return kUnknown;
  }
}

std::string driver_version(Segment& segment) { return segment.device(0).driver_version.data(); }

}  // namespace

extern "C" {

Return nvmlInit() { return started(true); }
Return nvmlInit_v2() { return started(true); }
Return nvmlInitWithFlags(unsigned flags) { return started((flags & kInitNoGpus) == 0); }

Return nvmlShutdown() {
  try {
    return stop();
  } catch (...) {
    return kUnknown;
  }
}

const char* nvmlErrorString(Return code) {
  switch (code) {
    case kSuccess:
      return "Success";
    case kUninitialized:
      return "Uninitialized";
    case kInvalidArgument:
      return "Invalid Argument";
    case kNotSupported:
      return "Not Supported";
    case kNoPermission:
      return "Insufficient Permissions";
    case kAlreadyInitialized:
      return "Already Initialized";
    case kNotFound:
      return "Not Found";
    case kInsufficientSize:
      return "Insufficient Size";
    case kDriverNotLoaded:
      return "Driver Not Loaded";
    case kTimeout:
      return "Timeout";
    case kFunctionNotFound:
      return "Function Not Found";
    case kGpuIsLost:
      return "GPU is lost";
    case kInUse:
      return "In use by another client";
    case kMemory:
      return "Insufficient Memory";
    case kNoData:
      return "No data";
    case kArgumentVersionMismatch:
      return "Argument version mismatch";
    case kDeprecated:
      return "Deprecated";
    case kNotReady:
      return "Not ready";
    case kGpuNotFound:
      return "No GPU found";
    default:
      return "Unknown Error";
  }
}

Return nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return guarded([&](Segment& segment) {
    return version == nullptr ? kInvalidArgument
                              : copy_text(driver_version(segment), version, length);
  });
}

Return nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  return guarded([&](Segment& segment) {
    return version == nullptr ? kInvalidArgument
                              : copy_text("13." + driver_version(segment), version, length);
  });
}

// These two work before init in the real library too.
Return nvmlSystemGetCudaDriverVersion(int* version) {
  if (version == nullptr) return kInvalidArgument;
  *version = kCudaVersion;
  return kSuccess;
}
Return nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return nvmlSystemGetCudaDriverVersion(version);
}

Return nvmlSystemGetProcessName(unsigned pid, char* name, unsigned length) {
  return guarded([&](Segment&) {
    if (name == nullptr || length == 0) return kInvalidArgument;
    const gpoeo::Fd file(open(fmt::format("/proc/{}/cmdline", pid).c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return kNotFound;
    char text[1024];
    const ssize_t size = read(file.get(), text, sizeof text - 1);
    if (size <= 0) return kNotFound;
    text[size] = '\0';
    // Cut to the caller's room, as the real library does.
    const std::string_view whole(text);
    return copy_text(whole.substr(0, std::min<std::size_t>(whole.size(), length - 1)), name,
                     length);
  });
}

}  // extern "C"
