// SPDX-License-Identifier: Apache-2.0
// libnvidia-ml.so.1, found at run time. A symbol the library lacks (old driver) leaves a null
// pointer here, and missing() makes the error when it is needed: one feature is unsupported,
// nothing else breaks.
//
// Setters are a table of their own that only setters() resolves, and only an opening with
// Access::kControl calls that: a read-only session holds no pointer that could change a GPU.
//
// Thread rule: as the port's (one thread). The library is never unloaded: vendor libraries leave
// threads and hooks behind that do not survive it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "gpu/nvml/abi.h"

namespace gpoeo::nvml {

namespace abi = nvml_abi;

struct Getters {
  using Handle = abi::DeviceHandle;
  using Text = abi::Return (*)(Handle, char*, unsigned);
  using Number = abi::Return (*)(Handle, unsigned*);
  using Wide = abi::Return (*)(Handle, unsigned long long*);
  using Processes = abi::Return (*)(Handle, unsigned*, abi::ProcessInfo*);

  abi::Return (*init)() = nullptr;
  abi::Return (*shutdown)() = nullptr;
  const char* (*error_string)(abi::Return) = nullptr;
  abi::Return (*driver_version)(char*, unsigned) = nullptr;
  abi::Return (*count)(unsigned*) = nullptr;
  abi::Return (*handle_by_index)(unsigned, Handle*) = nullptr;
  Text name = nullptr;
  Text uuid = nullptr;
  abi::Return (*pci_info)(Handle, abi::PciInfo*) = nullptr;
  abi::Return (*compute_capability)(Handle, int*, int*) = nullptr;
  abi::Return (*mig_mode)(Handle, unsigned*, unsigned*) = nullptr;

  abi::Return (*samples)(Handle, abi::SamplingType, unsigned long long, abi::ValueType*, unsigned*,
                         abi::Sample*) = nullptr;
  abi::Return (*field_values)(Handle, int, abi::FieldValue*) = nullptr;
  Number power_usage = nullptr;
  Wide energy = nullptr;
  abi::Return (*clock_info)(Handle, abi::ClockType, unsigned*) = nullptr;
  abi::Return (*utilization)(Handle, abi::Utilization*) = nullptr;
  abi::Return (*temperature)(Handle, abi::TemperatureSensor, unsigned*) = nullptr;
  Wide event_reasons = nullptr;
  abi::Return (*memory_clocks)(Handle, unsigned*, unsigned*) = nullptr;
  abi::Return (*graphics_clocks)(Handle, unsigned, unsigned*, unsigned*) = nullptr;
  abi::Return (*limit_constraints)(Handle, unsigned*, unsigned*) = nullptr;
  Number default_limit = nullptr;
  Number set_limit = nullptr;  // as last set
  Number enforced_limit = nullptr;
  Processes processes = nullptr;  // _v3, or _v2 of the same layout
  abi::Return (*processes_v1)(Handle, unsigned*, abi::ProcessInfoV1*) = nullptr;

  abi::Return (*gpm_support)(Handle, abi::GpmSupport*) = nullptr;
  abi::Return (*gpm_alloc)(abi::GpmSample*) = nullptr;
  abi::Return (*gpm_free)(abi::GpmSample) = nullptr;
  abi::Return (*gpm_sample)(Handle, abi::GpmSample) = nullptr;
  abi::Return (*gpm_metrics)(abi::GpmRequest*) = nullptr;

  // Extensions of our own twin library; null in the vendor's.
  abi::TwinVersionFn* twin_version = nullptr;
  abi::TwinLockedClocksFn* twin_locked_clocks = nullptr;
  abi::TwinNowFn* twin_now = nullptr;
};

struct Setters {
  using Handle = abi::DeviceHandle;
  abi::Return (*lock_sm)(Handle, unsigned min_mhz, unsigned max_mhz) = nullptr;
  abi::Return (*reset_sm)(Handle) = nullptr;
  abi::Return (*lock_memory)(Handle, unsigned min_mhz, unsigned max_mhz) = nullptr;
  abi::Return (*reset_memory)(Handle) = nullptr;
  abi::Return (*set_limit)(Handle, unsigned milliwatts) = nullptr;
};

class Library {
 public:
  // kNotFound, with the cure, when there is no such library; kNotSupported when it is not NVML.
  static Result<Library> open(const std::string& path);

  const Getters& get() const { return getters_; }
  Setters setters() const;
  const std::string& path() const { return path_; }

  // The one place where a return code becomes a Status. `what` is the device (or library) and
  // `call` NVML's name of the function; both go into the text with the vendor's own message and,
  // where there is one, the cure.
  Status check(abi::Return code, std::string_view what, std::string_view call) const;
  // The error of a symbol that this library lacks.
  std::unexpected<Error> missing(std::string_view what, std::string_view call) const;

 private:
  Library(void* handle, std::string path);
  void* handle_;
  std::string path_;
  Getters getters_;
};

}  // namespace gpoeo::nvml
