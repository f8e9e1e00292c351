// SPDX-License-Identifier: Apache-2.0
// Built twice: as a current driver, and with FAKE_NVML_OLD as one of before 2017 that lacks sample
// buffer, fields, energy, GPM, MIG, memory locks and the newer names.
#include "gpu/nvml/testing/fake_nvml.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

using namespace gpoeo::nvml_abi;
using gpoeo::nvml::testing::FakeNvml;

namespace {

// " 210 1410". Appended, since GCC 12 warns of overlap in "literal" + string (its bug 105651).
template <typename... Numbers>
std::string words(Numbers... numbers) {
  std::string text;
  (text.append(" ").append(std::to_string(numbers)), ...);
  return text;
}

FakeNvml& state() {
  static FakeNvml fake;
  return fake;
}

Return answer(const char* call) {
  const auto it = state().answers.find(call);
  return it == state().answers.end() ? kSuccess : it->second;
}

Return text(const char* call, const char* value, char* out, unsigned length) {
  if (const Return r = answer(call)) return r;
  std::snprintf(out, length, "%s", value);
  return kSuccess;
}

template <typename T>
Return give(const char* call, T value, T* out) {
  if (const Return r = answer(call)) return r;
  *out = value;
  return kSuccess;
}

Return setter(const char* call, std::string arguments) {
  if (state().setters_abort) std::abort();
  state().setter_calls.push_back(std::string(call) + arguments);
  return answer(call);
}

template <typename Info>
Return processes(const char* call, unsigned* count, Info* infos) {
  if (const Return r = answer(call)) return r;
  const unsigned room = *count;
  *count = state().processes;
  if (room < state().processes) return kInsufficientSize;
  for (unsigned i = 0; i < state().processes; ++i) {
    infos[i] = {};
    infos[i].pid = 1000 + i;
    infos[i].used_memory = i == 0 ? 1ULL << 30 : kNotAvailable64;
  }
  return kSuccess;
}

}  // namespace

extern "C" {

FakeNvml* fakeNvmlState() { return &state(); }

Return nvmlInit_v2() {
  ++state().inits;
  return answer("nvmlInit");
}
Return nvmlShutdown() {
  ++state().shutdowns;
  return kSuccess;
}
const char* nvmlErrorString(Return code) {
  return code == kNoPermission ? "Insufficient Permissions" : "vendor text";
}
Return nvmlSystemGetDriverVersion(char* out, unsigned n) {
  return text("nvmlSystemGetDriverVersion", "580.1", out, n);
}
Return nvmlDeviceGetCount_v2(unsigned* out) { return give("nvmlDeviceGetCount", 1U, out); }
Return nvmlDeviceGetHandleByIndex_v2(unsigned, DeviceHandle* out) {
  return give("nvmlDeviceGetHandleByIndex", reinterpret_cast<DeviceHandle>(&state()), out);
}
Return nvmlDeviceGetName(DeviceHandle, char* out, unsigned n) {
  return text("nvmlDeviceGetName", "Fake GPU", out, n);
}
Return nvmlDeviceGetUUID(DeviceHandle, char* out, unsigned n) {
  return text("nvmlDeviceGetUUID", "GPU-0000", out, n);
}
Return nvmlDeviceGetPciInfo_v3(DeviceHandle, PciInfo* out) {
  std::snprintf(out->bus_id, sizeof out->bus_id, "00000000:65:00.0");
  return answer("nvmlDeviceGetPciInfo");
}
Return nvmlDeviceGetCudaComputeCapability(DeviceHandle, int* major, int* minor) {
  *major = state().compute_major;
  *minor = state().compute_minor;
  return answer("nvmlDeviceGetCudaComputeCapability");
}
Return nvmlDeviceGetPowerUsage(DeviceHandle, unsigned* out) {
  return give("nvmlDeviceGetPowerUsage", state().usage_mw, out);
}
Return nvmlDeviceGetClockInfo(DeviceHandle, ClockType type, unsigned* out) {
  return give("nvmlDeviceGetClockInfo", type == kClockMemory ? state().memory_mhz : state().sm_mhz,
              out);
}
Return nvmlDeviceGetUtilizationRates(DeviceHandle, Utilization* out) {
  return give("nvmlDeviceGetUtilizationRates", state().utilization, out);
}
Return nvmlDeviceGetTemperature(DeviceHandle, TemperatureSensor, unsigned* out) {
  return give("nvmlDeviceGetTemperature", state().celsius, out);
}
Return nvmlDeviceGetCurrentClocksThrottleReasons(DeviceHandle, unsigned long long* out) {
  return give("nvmlDeviceGetCurrentClocksThrottleReasons", state().reasons, out);
}
Return nvmlDeviceGetSupportedMemoryClocks(DeviceHandle, unsigned* count, unsigned* out) {
  if (const Return r = answer("nvmlDeviceGetSupportedMemoryClocks")) return r;
  out[0] = 3201;
  out[1] = 2201;
  *count = 2;
  return kSuccess;
}
Return nvmlDeviceGetSupportedGraphicsClocks(DeviceHandle, unsigned memory, unsigned* count,
                                            unsigned* out) {
  if (const Return r = answer("nvmlDeviceGetSupportedGraphicsClocks")) return r;
  const unsigned top = memory == 3201 ? 1980 : 1500;
  *count = 0;
  for (unsigned mhz = top; mhz >= 345; mhz -= 15) out[(*count)++] = mhz;
  return kSuccess;
}
Return nvmlDeviceGetPowerManagementLimitConstraints(DeviceHandle, unsigned* min, unsigned* max) {
  *min = 200'000;
  *max = 700'000;
  return answer("nvmlDeviceGetPowerManagementLimitConstraints");
}
Return nvmlDeviceGetPowerManagementDefaultLimit(DeviceHandle, unsigned* out) {
  return give("nvmlDeviceGetPowerManagementDefaultLimit", 700'000U, out);
}
Return nvmlDeviceGetEnforcedPowerLimit(DeviceHandle, unsigned* out) {
  return give("nvmlDeviceGetEnforcedPowerLimit", state().enforced_limit_mw, out);
}
Return nvmlDeviceGetComputeRunningProcesses(DeviceHandle, unsigned* count, ProcessInfoV1* infos) {
  return processes("nvmlDeviceGetComputeRunningProcesses", count, infos);
}

// Setters are indirect functions, so that even asking for the address of one is seen.
static Return lock_sm(DeviceHandle, unsigned min, unsigned max) {
  return setter("nvmlDeviceSetGpuLockedClocks", words(min, max));
}
static Return reset_sm(DeviceHandle) { return setter("nvmlDeviceResetGpuLockedClocks", ""); }
static Return set_limit(DeviceHandle, unsigned mw) {
  return setter("nvmlDeviceSetPowerManagementLimit", words(mw));
}
#define SETTER(exported, resolver, function, ...)                 \
  [[gnu::used]] static auto resolver()->Return (*)(__VA_ARGS__) { \
    ++state().setter_lookups;                                     \
    return &function;                                             \
  }                                                               \
  __attribute__((ifunc(#resolver))) Return exported(__VA_ARGS__)
SETTER(nvmlDeviceSetGpuLockedClocks, resolve_lock_sm, lock_sm, DeviceHandle, unsigned, unsigned);
SETTER(nvmlDeviceResetGpuLockedClocks, resolve_reset_sm, reset_sm, DeviceHandle);
SETTER(nvmlDeviceSetPowerManagementLimit, resolve_set_limit, set_limit, DeviceHandle, unsigned);

#ifndef FAKE_NVML_OLD

Return nvmlDeviceGetMigMode(DeviceHandle, unsigned* current, unsigned* pending) {
  *current = *pending = state().mig;
  return answer("nvmlDeviceGetMigMode");
}
Return nvmlDeviceGetSamples(DeviceHandle, SamplingType, unsigned long long since, ValueType* type,
                            unsigned* count, Sample* out) {
  if (const Return r = answer("nvmlDeviceGetSamples")) return r;
  const unsigned room = *count;
  *type = kValueUnsigned;
  *count = 0;
  for (const Sample& sample : state().samples) {
    if (sample.time_us > since && *count < room) out[(*count)++] = sample;
  }
  return *count == 0 ? kNotFound : kSuccess;
}
Return nvmlDeviceGetFieldValues(DeviceHandle, int count, FieldValue* values) {
  if (const Return r = answer("nvmlDeviceGetFieldValues")) return r;
  for (int i = 0; i < count; ++i) {
    const auto status = state().field_answers.find(values[i].field);
    values[i].status = status == state().field_answers.end() ? kSuccess : status->second;
    values[i].type = kValueUnsigned;
    values[i].value.as_unsigned = state().fields_mw[values[i].field];
  }
  return kSuccess;
}
Return nvmlDeviceGetTotalEnergyConsumption(DeviceHandle, unsigned long long* out) {
  return give("nvmlDeviceGetTotalEnergyConsumption", state().energy_mj, out);
}
Return nvmlDeviceGetComputeRunningProcesses_v3(DeviceHandle, unsigned* count, ProcessInfo* infos) {
  return processes("nvmlDeviceGetComputeRunningProcesses", count, infos);
}
Return nvmlGpmQueryDeviceSupport(DeviceHandle, GpmSupport* out) {
  out->supported = state().gpm_supported ? 1 : 0;
  return answer("nvmlGpmQueryDeviceSupport");
}
Return nvmlGpmSampleAlloc(GpmSample* out) {
  *out = reinterpret_cast<GpmSample>(new int(0));
  return answer("nvmlGpmSampleAlloc");
}
Return nvmlGpmSampleFree(GpmSample sample) {
  delete reinterpret_cast<int*>(sample);
  return kSuccess;
}
Return nvmlGpmSampleGet(DeviceHandle, GpmSample) { return answer("nvmlGpmSampleGet"); }
Return nvmlGpmMetricsGet(GpmRequest* request) {
  for (unsigned i = 0; i < request->count; ++i) {
    const auto it = state().gpm.find(request->metrics[i].id);
    request->metrics[i].status = it == state().gpm.end() ? kNotSupported : kSuccess;
    request->metrics[i].value = it == state().gpm.end() ? 0 : it->second;
  }
  return answer("nvmlGpmMetricsGet");
}
static Return lock_memory(DeviceHandle, unsigned min, unsigned max) {
  return setter("nvmlDeviceSetMemoryLockedClocks", words(min, max));
}
static Return reset_memory(DeviceHandle) { return setter("nvmlDeviceResetMemoryLockedClocks", ""); }
SETTER(nvmlDeviceSetMemoryLockedClocks, resolve_lock_memory, lock_memory, DeviceHandle, unsigned,
       unsigned);
SETTER(nvmlDeviceResetMemoryLockedClocks, resolve_reset_memory, reset_memory, DeviceHandle);

#endif  // FAKE_NVML_OLD

}  // extern "C"
