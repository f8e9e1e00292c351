// SPDX-License-Identifier: Apache-2.0
// A Device around another one, with a hook before and after each call: what FaultyDevice and
// RecordingDevice have in common.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "gpu/device.h"

namespace gpoeo::gpu::testing {

// Every call of Device and Controls that a test may want to see or to fail.
enum class Call {
  kPowerSamplesSince,
  kPowerInstant,
  kPowerAverage,
  kEnergyCounter,
  kSmClock,
  kMemoryClock,
  kUtilization,
  kTemperature,
  kEventReasons,
  kCounters,
  kComputeProcesses,
  kPowerLimit,
  kLockSmClocks,
  kResetSmClocks,
  kLockMemoryClocks,
  kResetMemoryClocks,
  kSetPowerLimit,
  kResetPowerLimit,
  kSmClockLock,
  kMemoryClockLock,
  kPowerLimitSetting,
  kCount,
};
std::string_view to_string(Call call);  // the method's name, "lock_sm_clocks"
// Whether the call changes the card.
bool is_write(Call call);

class CallHook {
 public:
  virtual ~CallHook() = default;
  // An error here is the call's answer; the inner device is not asked then. `arguments` in MHz and
  // W: "210 1200".
  virtual Status before(Call call, std::string_view arguments) = 0;
  // `error` is nullptr when the call went well.
  virtual void after(Call call, std::string_view arguments, const Error* error) = 0;
};

// Owns the inner device, borrows the hook. Thread rule: as the inner device's.
class DecoratedDevice : public Device {
 public:
  DecoratedDevice(std::unique_ptr<Device> inner, CallHook& hook);
  ~DecoratedDevice() override;

  const DeviceIdentity& identity() const override;
  const Capabilities& capabilities() const override;
  Result<std::vector<PowerSample>> power_samples_since(Instant since) override;
  Result<Watts> power_instant() override;
  Result<Watts> power_average() override;
  Result<Joules> energy_counter() override;
  Result<Hertz> sm_clock() override;
  Result<Hertz> memory_clock() override;
  Result<Utilization> utilization() override;
  Result<Celsius> temperature() override;
  Result<EventReasons> event_reasons() override;
  Result<Counters> counters() override;
  Result<std::vector<ComputeProcess>> compute_processes() override;
  Result<Watts> power_limit() override;
  // nullptr when the inner device has none.
  Controls* controls() override;

 private:
  class HookedControls;
  std::unique_ptr<Device> inner_;
  CallHook& hook_;
  std::unique_ptr<HookedControls> controls_;
};

}  // namespace gpoeo::gpu::testing
