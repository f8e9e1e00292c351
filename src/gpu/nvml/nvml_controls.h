// SPDX-License-Identifier: Apache-2.0
// Setting clocks and limits through NVML. Exists only for a device opened with Access::kControl.
// Internal to this module.
#pragma once

#include <memory>
#include <string>

#include "gpu/device.h"
#include "gpu/nvml/session.h"

namespace gpoeo::nvml {

class NvmlControls final : public gpu::Controls {
 public:
  // `capabilities` is the owning device's and outlives this. `refusal` is why nothing may be set
  // here (MIG), empty when all may be tried.
  NvmlControls(std::shared_ptr<Session> session, abi::DeviceHandle handle, std::string label,
               const gpu::Capabilities& capabilities, std::string refusal);

  Status lock_sm_clocks(gpu::ClockRange range) override;
  Status reset_sm_clocks() override;
  Status lock_memory_clocks(gpu::ClockRange range) override;
  Status reset_memory_clocks() override;
  Status set_power_limit(Watts limit) override;
  Status reset_power_limit() override;
  Result<std::optional<gpu::ClockRange>> sm_clock_lock() override;
  Result<std::optional<gpu::ClockRange>> memory_clock_lock() override;
  Result<Watts> power_limit_setting() override;

  // Whether the library has the setters of `control` at all.
  bool has(gpu::Control control) const;

 private:
  template <typename Function, typename... Args>
  Status call(Function function, std::string_view name, Args... args);
  Result<std::optional<gpu::ClockRange>> lock_of(abi::ClockType type, std::string_view what);

  std::shared_ptr<Session> session_;  // as NvmlDevice's
  abi::DeviceHandle handle_;
  std::string label_;
  const gpu::Capabilities& capabilities_;
  std::string refusal_;
  Setters set_;
};

}  // namespace gpoeo::nvml
