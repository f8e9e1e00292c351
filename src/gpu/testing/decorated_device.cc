// SPDX-License-Identifier: Apache-2.0
#include "gpu/testing/decorated_device.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace gpoeo::gpu::testing {
namespace {

constexpr std::array<std::string_view, static_cast<int>(Call::kCount)> kNames = {
    "power_samples_since",
    "power_instant",
    "power_average",
    "energy_counter",
    "sm_clock",
    "memory_clock",
    "utilization",
    "temperature",
    "event_reasons",
    "counters",
    "compute_processes",
    "power_limit",
    "lock_sm_clocks",
    "reset_sm_clocks",
    "lock_memory_clocks",
    "reset_memory_clocks",
    "set_power_limit",
    "reset_power_limit",
    "sm_clock_lock",
    "memory_clock_lock",
    "power_limit_setting"};

template <typename Function>
auto hooked(CallHook& hook, Call call, const std::string& arguments, Function function)
    -> decltype(function()) {
  if (Status before = hook.before(call, arguments); !before) {
    hook.after(call, arguments, &before.error());
    return std::unexpected(std::move(before).error());
  }
  auto result = function();
  hook.after(call, arguments, result ? nullptr : &result.error());
  return result;
}

std::string text_of(ClockRange range) {
  return fmt::format("{:.0f} {:.0f}", to_mhz(range.min), to_mhz(range.max));
}

}  // namespace

std::string_view to_string(Call call) { return kNames.at(static_cast<std::size_t>(call)); }

bool is_write(Call call) { return call >= Call::kLockSmClocks && call <= Call::kResetPowerLimit; }

class DecoratedDevice::HookedControls final : public Controls {
 public:
  HookedControls(Controls& inner, CallHook& hook) : inner_(inner), hook_(hook) {}

  Status lock_sm_clocks(ClockRange range) override {
    return hooked(hook_, Call::kLockSmClocks, text_of(range),
                  [&] { return inner_.lock_sm_clocks(range); });
  }
  Status reset_sm_clocks() override {
    return hooked(hook_, Call::kResetSmClocks, "", [&] { return inner_.reset_sm_clocks(); });
  }
  Status lock_memory_clocks(ClockRange range) override {
    return hooked(hook_, Call::kLockMemoryClocks, text_of(range),
                  [&] { return inner_.lock_memory_clocks(range); });
  }
  Status reset_memory_clocks() override {
    return hooked(hook_, Call::kResetMemoryClocks, "",
                  [&] { return inner_.reset_memory_clocks(); });
  }
  Status set_power_limit(Watts limit) override {
    return hooked(hook_, Call::kSetPowerLimit, fmt::format("{:.0f}", limit.value()),
                  [&] { return inner_.set_power_limit(limit); });
  }
  Status reset_power_limit() override {
    return hooked(hook_, Call::kResetPowerLimit, "", [&] { return inner_.reset_power_limit(); });
  }
  Result<std::optional<ClockRange>> sm_clock_lock() override {
    return hooked(hook_, Call::kSmClockLock, "", [&] { return inner_.sm_clock_lock(); });
  }
  Result<std::optional<ClockRange>> memory_clock_lock() override {
    return hooked(hook_, Call::kMemoryClockLock, "", [&] { return inner_.memory_clock_lock(); });
  }
  Result<Watts> power_limit_setting() override {
    return hooked(hook_, Call::kPowerLimitSetting, "",
                  [&] { return inner_.power_limit_setting(); });
  }

 private:
  Controls& inner_;
  CallHook& hook_;
};

DecoratedDevice::DecoratedDevice(std::unique_ptr<Device> inner, CallHook& hook)
    : inner_(std::move(inner)), hook_(hook) {
  if (Controls* controls = inner_->controls()) {
    controls_ = std::make_unique<HookedControls>(*controls, hook_);
  }
}

DecoratedDevice::~DecoratedDevice() = default;

const DeviceIdentity& DecoratedDevice::identity() const { return inner_->identity(); }
const Capabilities& DecoratedDevice::capabilities() const { return inner_->capabilities(); }
Controls* DecoratedDevice::controls() { return controls_.get(); }

Result<std::vector<PowerSample>> DecoratedDevice::power_samples_since(Instant since) {
  return hooked(hook_, Call::kPowerSamplesSince, "",
                [&] { return inner_->power_samples_since(since); });
}
Result<Watts> DecoratedDevice::power_instant() {
  return hooked(hook_, Call::kPowerInstant, "", [&] { return inner_->power_instant(); });
}
Result<Watts> DecoratedDevice::power_average() {
  return hooked(hook_, Call::kPowerAverage, "", [&] { return inner_->power_average(); });
}
Result<Joules> DecoratedDevice::energy_counter() {
  return hooked(hook_, Call::kEnergyCounter, "", [&] { return inner_->energy_counter(); });
}
Result<Hertz> DecoratedDevice::sm_clock() {
  return hooked(hook_, Call::kSmClock, "", [&] { return inner_->sm_clock(); });
}
Result<Hertz> DecoratedDevice::memory_clock() {
  return hooked(hook_, Call::kMemoryClock, "", [&] { return inner_->memory_clock(); });
}
Result<Utilization> DecoratedDevice::utilization() {
  return hooked(hook_, Call::kUtilization, "", [&] { return inner_->utilization(); });
}
Result<Celsius> DecoratedDevice::temperature() {
  return hooked(hook_, Call::kTemperature, "", [&] { return inner_->temperature(); });
}
Result<EventReasons> DecoratedDevice::event_reasons() {
  return hooked(hook_, Call::kEventReasons, "", [&] { return inner_->event_reasons(); });
}
Result<Counters> DecoratedDevice::counters() {
  return hooked(hook_, Call::kCounters, "", [&] { return inner_->counters(); });
}
Result<std::vector<ComputeProcess>> DecoratedDevice::compute_processes() {
  return hooked(hook_, Call::kComputeProcesses, "", [&] { return inner_->compute_processes(); });
}
Result<Watts> DecoratedDevice::power_limit() {
  return hooked(hook_, Call::kPowerLimit, "", [&] { return inner_->power_limit(); });
}

}  // namespace gpoeo::gpu::testing
