// SPDX-License-Identifier: Apache-2.0
// One GPU through NVML. Internal to this module; open it through open_nvml().
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/device.h"
#include "gpu/nvml/gpm_counters.h"
#include "gpu/nvml/nvml_controls.h"
#include "gpu/nvml/session.h"

namespace gpoeo::nvml {

class NvmlDevice final : public gpu::Device {
 public:
  // Finds out what the card can tell and take, with getters only.
  static Result<std::unique_ptr<NvmlDevice>> open(std::shared_ptr<Session> session, unsigned index,
                                                  gpu::Access access);

  const gpu::DeviceIdentity& identity() const override { return identity_; }
  const gpu::Capabilities& capabilities() const override { return capabilities_; }

  Result<std::vector<gpu::PowerSample>> power_samples_since(Instant since) override;
  // Field 186; on cards whose nvmlDeviceGetPowerUsage is instantaneous, that when there is no
  // field.
  Result<Watts> power_instant() override;
  // Field 185; on cards whose nvmlDeviceGetPowerUsage is the 1 s average, that when there is none.
  Result<Watts> power_average() override;
  // A step down, or one larger than the card could draw, is kIo: the counter starts anew there.
  Result<Joules> energy_counter() override;
  Result<Hertz> sm_clock() override;
  Result<Hertz> memory_clock() override;
  Result<gpu::Utilization> utilization() override;
  Result<Celsius> temperature() override;
  Result<gpu::EventReasons> event_reasons() override;
  Result<gpu::Counters> counters() override;
  Result<std::vector<gpu::ComputeProcess>> compute_processes() override;
  Result<Watts> power_limit() override;
  gpu::Controls* controls() override { return controls_.get(); }

 private:
  struct EnergyPoint {
    Instant time;
    unsigned long long millijoules;
  };

  NvmlDevice(std::shared_ptr<Session> session, abi::DeviceHandle handle)
      : session_(std::move(session)), handle_(handle) {}
  Status identify(unsigned index);
  void probe_readings();
  void probe_clocks();
  void probe_limits();
  void probe_controls(gpu::Access access, const std::string& mig_reason);
  // Why MIG forbids control, empty when it does not.
  std::string mig_reason() const;
  Status check(abi::Return code, std::string_view call) const;
  std::unexpected<Error> missing(std::string_view call) const;
  // "GPU 0: nvmlX: 4294967295 W is no power": a sentinel or an absurd value.
  std::unexpected<Error> absurd(std::string_view call, double value, std::string_view unit) const;
  Result<Watts> field_power(abi::Field field) const;
  Result<Watts> power_usage() const;
  Result<Watts> watts_from(double milliwatts, std::string_view call) const;
  Result<Hertz> clock(abi::ClockType type) const;
  // Whether nvmlDeviceGetPowerUsage averages over 1 s here (Ampere on, except GA100).
  bool usage_is_average() const;

  // Shared with the driver and its other devices: NVML is shut down when the last one goes.
  std::shared_ptr<Session> session_;
  abi::DeviceHandle handle_;
  std::string label_;  // "GPU 0 (NVIDIA H200)", first word of each error
  gpu::DeviceIdentity identity_;
  gpu::Capabilities capabilities_;
  int compute_major_ = 0;
  int compute_minor_ = 0;
  std::vector<abi::Sample> sample_buffer_;
  std::optional<EnergyPoint> last_energy_;
  std::optional<GpmCounters> gpm_;
  std::unique_ptr<NvmlControls> controls_;
};

}  // namespace gpoeo::nvml
