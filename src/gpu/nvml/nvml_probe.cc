// SPDX-License-Identifier: Apache-2.0
// What an NvmlDevice finds out once, at opening: with getters only, and never failing as a whole
// because one of them does.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gpu/nvml/nvml_device.h"

namespace gpoeo::nvml {
namespace {

// The H200 keeps 119 power samples.
constexpr std::size_t kFirstSampleBuffer = 256;

template <typename T>
gpu::Support support_of(const Result<T>& result) {
  if (result) return gpu::Support::kYes;
  switch (result.error().kind) {
    case ErrorKind::kNotSupported:
      return gpu::Support::kNo;
    case ErrorKind::kNoPermission:
      return gpu::Support::kNoPermission;
    default:
      return gpu::Support::kUnknown;  // it failed this time
  }
}

}  // namespace

Result<std::unique_ptr<NvmlDevice>> NvmlDevice::open(std::shared_ptr<Session> session,
                                                     unsigned index, gpu::Access access) {
  const std::string label = fmt::format("GPU {}", index);
  abi::DeviceHandle handle = nullptr;
  GPOEO_TRY_STATUS(session->library().check(session->get().handle_by_index(index, &handle), label,
                                            "nvmlDeviceGetHandleByIndex"));
  std::unique_ptr<NvmlDevice> device(new NvmlDevice(std::move(session), handle));
  device->label_ = label;
  GPOEO_TRY_STATUS(device->identify(index));
  device->sample_buffer_.resize(kFirstSampleBuffer);
  device->probe_limits();
  device->probe_clocks();
  device->probe_readings();
  device->probe_controls(access, device->mig_reason());
  return device;
}

Status NvmlDevice::identify(unsigned index) {
  const Getters& get = session_->get();
  identity_.index = index;
  identity_.simulated = session_->simulated();
  char text[96] = "";
  if (get.name == nullptr) return missing("nvmlDeviceGetName");
  GPOEO_TRY_STATUS(check(get.name(handle_, text, sizeof text - 1), "nvmlDeviceGetName"));
  identity_.name = text;
  label_ =
      fmt::format("GPU {} ({}{})", index, identity_.name, identity_.simulated ? ", simulated" : "");
  // Everything is keyed by the UUID: a card that does not tell it cannot be used.
  if (get.uuid == nullptr) return missing("nvmlDeviceGetUUID");
  char uuid[96] = "";
  GPOEO_TRY_STATUS(check(get.uuid(handle_, uuid, sizeof uuid - 1), "nvmlDeviceGetUUID"));
  identity_.uuid = uuid;
  abi::PciInfo pci{};
  if (get.pci_info != nullptr && get.pci_info(handle_, &pci) == abi::kSuccess) {
    pci.bus_id[sizeof pci.bus_id - 1] = '\0';
    identity_.pci_bus_id = pci.bus_id;
  }
  if (get.compute_capability == nullptr ||
      get.compute_capability(handle_, &compute_major_, &compute_minor_) != abi::kSuccess) {
    compute_major_ = compute_minor_ = 0;
  }
  return {};
}

void NvmlDevice::probe_readings() {
  using gpu::Reading;
  auto& c = capabilities_;
  c[Reading::kPowerSamples] = support_of(power_samples_since(session_->clock().now()));
  c[Reading::kPowerInstant] = support_of(power_instant());
  c[Reading::kPowerAverage] = support_of(power_average());
  c[Reading::kEnergyCounter] = support_of(energy_counter());
  c[Reading::kSmClock] = support_of(sm_clock());
  c[Reading::kMemoryClock] = support_of(memory_clock());
  c[Reading::kUtilization] = support_of(utilization());
  c[Reading::kTemperature] = support_of(temperature());
  c[Reading::kEventReasons] = support_of(event_reasons());
  c[Reading::kProcesses] = support_of(compute_processes());
  c[Reading::kCounters] = GpmCounters::support(*session_, handle_);
  if (c[Reading::kCounters] == gpu::Support::kYes) gpm_.emplace(session_, handle_, label_);
}

void NvmlDevice::probe_clocks() {
  const Getters& get = session_->get();
  if (get.memory_clocks == nullptr || get.graphics_clocks == nullptr) return;
  std::vector<unsigned> memory(64);
  auto count = static_cast<unsigned>(memory.size());
  if (get.memory_clocks(handle_, &count, memory.data()) != abi::kSuccess) return;
  memory.resize(std::min<std::size_t>(count, memory.size()));
  std::ranges::sort(memory, std::greater<>());
  for (const unsigned memory_mhz : memory) {
    std::vector<unsigned> sm(1024);
    auto sm_count = static_cast<unsigned>(sm.size());
    if (get.graphics_clocks(handle_, memory_mhz, &sm_count, sm.data()) != abi::kSuccess) continue;
    sm.resize(std::min<std::size_t>(sm_count, sm.size()));
    std::ranges::sort(sm);
    sm.erase(std::unique(sm.begin(), sm.end()), sm.end());
    gpu::MemoryClockEntry entry{megahertz(memory_mhz), {}};
    for (const unsigned mhz : sm) entry.sm.push_back(megahertz(mhz));
    if (!entry.sm.empty()) capabilities_.clocks.push_back(std::move(entry));
  }
}

void NvmlDevice::probe_limits() {
  const Getters& get = session_->get();
  if (get.limit_constraints == nullptr || get.default_limit == nullptr) return;
  unsigned min_mw = 0;
  unsigned max_mw = 0;
  unsigned default_mw = 0;
  if (get.limit_constraints(handle_, &min_mw, &max_mw) != abi::kSuccess ||
      get.default_limit(handle_, &default_mw) != abi::kSuccess) {
    return;
  }
  constexpr auto kCall = "nvmlDeviceGetPowerManagementLimitConstraints";
  const auto min = watts_from(min_mw, kCall);
  const auto max = watts_from(max_mw, kCall);
  const auto standard = watts_from(default_mw, kCall);
  if (min && max && standard && *min <= *max) {
    capabilities_.power_limits = gpu::PowerLimits{*min, *max, *standard};
  }
}

std::string NvmlDevice::mig_reason() const {
  const Getters& get = session_->get();
  unsigned current = 0;
  unsigned pending = 0;
  if (get.mig_mode == nullptr || get.mig_mode(handle_, &current, &pending) != abi::kSuccess ||
      current == 0) {
    return "";
  }
  return "MIG is on: all its slices share one clock and one power limit, so gpoeo does not set "
         "them; use a whole GPU (nvidia-smi -mig 0)";
}

void NvmlDevice::probe_controls(gpu::Access access, const std::string& mig_reason) {
  if (access == gpu::Access::kControl) {
    controls_ =
        std::make_unique<NvmlControls>(session_, handle_, label_, capabilities_, mig_reason);
  }
  for (int i = 0; i < static_cast<int>(gpu::Control::kCount); ++i) {
    const auto control = static_cast<gpu::Control>(i);
    const bool absent = controls_ != nullptr && !controls_->has(control);
    // Rights show only when a setter is tried.
    capabilities_[control] =
        !mig_reason.empty() || absent ? gpu::Support::kNo : gpu::Support::kUnknown;
  }
  if (!capabilities_.power_limits) capabilities_[gpu::Control::kPowerLimit] = gpu::Support::kNo;
}

}  // namespace gpoeo::nvml
