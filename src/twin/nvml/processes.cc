// SPDX-License-Identifier: Apache-2.0
// Processes: jobs attached to the card count as compute processes.
#include <algorithm>
#include <type_traits>
#include <vector>

#include "twin/nvml/front.h"

using namespace gpoeo::nvml_abi;
using namespace gpoeo::twin;
using namespace gpoeo::twin::front;

namespace {

constexpr unsigned kNoInstance = 0xFFFFFFFF;  // not a MIG slice

template <typename Info>
Return compute_processes(DeviceHandle handle, unsigned* count, Info* infos) noexcept {
  return on_card(
      handle,
      [&](const CardFront& card) {
        const auto processes = card.compute_processes();
        if (!processes) return to_return(processes.error());
        const unsigned room = *count;
        *count = static_cast<unsigned>(processes->size());
        if (room < *count) return kInsufficientSize;
        if (*count > 0 && infos == nullptr) return kInvalidArgument;
        for (unsigned i = 0; i < *count; ++i) {
          const auto& process = (*processes)[i];
          infos[i] = {};
          infos[i].pid = static_cast<unsigned>(process.pid);
          infos[i].used_memory = process.memory_bytes.value_or(kNotAvailable64);
          if constexpr (std::is_same_v<Info, ProcessInfo>) {
            infos[i].gpu_instance = infos[i].compute_instance = kNoInstance;
          }
        }
        return kSuccess;
      },
      count);
}

// No graphics and no MPS on a twin.
Return no_processes(DeviceHandle handle, unsigned* count) noexcept {
  return answer(handle, count, [](const DeviceModel&) { return 0; });
}

}  // namespace

extern "C" {

Return nvmlDeviceGetComputeRunningProcesses(DeviceHandle handle, unsigned* count,
                                            ProcessInfoV1* infos) {
  return compute_processes(handle, count, infos);
}
Return nvmlDeviceGetComputeRunningProcesses_v2(DeviceHandle handle, unsigned* count,
                                               ProcessInfo* infos) {
  return compute_processes(handle, count, infos);
}
Return nvmlDeviceGetComputeRunningProcesses_v3(DeviceHandle handle, unsigned* count,
                                               ProcessInfo* infos) {
  return compute_processes(handle, count, infos);
}

Return nvmlDeviceGetGraphicsRunningProcesses(DeviceHandle handle, unsigned* count, ProcessInfoV1*) {
  return no_processes(handle, count);
}
Return nvmlDeviceGetGraphicsRunningProcesses_v2(DeviceHandle handle, unsigned* count,
                                                ProcessInfo*) {
  return no_processes(handle, count);
}
Return nvmlDeviceGetGraphicsRunningProcesses_v3(DeviceHandle handle, unsigned* count,
                                                ProcessInfo*) {
  return no_processes(handle, count);
}
Return nvmlDeviceGetMPSComputeRunningProcesses(DeviceHandle handle, unsigned* count,
                                               ProcessInfoV1*) {
  return no_processes(handle, count);
}
Return nvmlDeviceGetMPSComputeRunningProcesses_v2(DeviceHandle handle, unsigned* count,
                                                  ProcessInfo*) {
  return no_processes(handle, count);
}
Return nvmlDeviceGetMPSComputeRunningProcesses_v3(DeviceHandle handle, unsigned* count,
                                                  ProcessInfo*) {
  return no_processes(handle, count);
}

// One sample a process, at the last step of the utilisation sensor. Jobs that share the card are
// not told apart by the sensor, so each gets an equal part.
Return nvmlDeviceGetProcessUtilization(DeviceHandle handle, ProcessSample* samples, unsigned* count,
                                       unsigned long long last_seen_us) {
  return on_card(
      handle,
      [&](const CardFront& card) {
        const auto processes = card.compute_processes();
        if (!processes) return to_return(processes.error());
        const auto since = from_stamp_us(last_seen_us);
        const auto sm = card.gpu_utilization_samples_since(since);
        const auto memory = card.memory_utilization_samples_since(since);
        if (!sm) return to_return(sm.error());
        if (!memory) return to_return(memory.error());
        if (processes->empty() || sm->empty() || memory->empty()) return kNotFound;
        const unsigned room = *count;
        *count = static_cast<unsigned>(processes->size());
        if (samples == nullptr || room < *count) return kInsufficientSize;
        const auto parts = static_cast<double>(processes->size());
        for (unsigned i = 0; i < *count; ++i) {
          samples[i] = {};
          samples[i].pid = static_cast<unsigned>((*processes)[i].pid);
          samples[i].time_us = to_stamp_us(sm->back().time);
          samples[i].sm = to_percent(sm->back().share / parts);
          samples[i].memory = to_percent(memory->back().share / parts);
        }
        return kSuccess;
      },
      count);
}

}  // extern "C"
