// SPDX-License-Identifier: Apache-2.0
// Power, energy and limits.
#include "twin/nvml/power.h"

#include <cmath>

using namespace gpoeo::nvml_abi;
using namespace gpoeo::twin;
using namespace gpoeo::twin::front;

namespace gpoeo::twin::front {

Result<Watts> power_usage(const CardFront& card) {
  const DeviceModel& device = card.device();
  const bool average = device.cuda_major > 8 || (device.cuda_major == 8 && device.cuda_minor > 0);
  return average ? card.power_average() : card.power_instant();
}

unsigned long long to_millijoules(Joules energy) {
  return static_cast<unsigned long long>(std::llround(energy.value() * 1e3));
}

}  // namespace gpoeo::twin::front

namespace {

template <typename Read>
Return milliwatts(DeviceHandle handle, unsigned* out, Read read) noexcept {
  return on_card(
      handle, [&](const CardFront& card) { return give(read(card), out, to_milliwatts); }, out);
}

Return set_limit(DeviceHandle handle, unsigned limit_mw) noexcept {
  return on_card(handle, [&](const CardFront& card) {
    return to_return(card.set_power_limit(gpoeo::Watts(limit_mw * 1e-3)));
  });
}

}  // namespace

extern "C" {

Return nvmlDeviceGetPowerManagementMode(DeviceHandle handle, unsigned* mode) {
  return answer(handle, mode, [](const DeviceModel&) { return 1; });
}

Return nvmlDeviceGetPowerUsage(DeviceHandle handle, unsigned* mw) {
  return milliwatts(handle, mw, [](const CardFront& card) { return power_usage(card); });
}

Return nvmlDeviceGetTotalEnergyConsumption(DeviceHandle handle, unsigned long long* mj) {
  return on_card(
      handle,
      [&](const CardFront& card) { return give(card.energy_counter(), mj, to_millijoules); }, mj);
}

Return nvmlDeviceGetPowerManagementLimit(DeviceHandle handle, unsigned* mw) {
  return on_card(
      handle,
      [&](const CardFront& card) {
        return give(card.read_locks(), mw,
                    [](const Locks& locks) { return to_milliwatts(locks.power_limit); });
      },
      mw);
}

Return nvmlDeviceGetEnforcedPowerLimit(DeviceHandle handle, unsigned* mw) {
  return milliwatts(handle, mw, [](const CardFront& card) { return card.power_limit(); });
}

Return nvmlDeviceGetPowerManagementDefaultLimit(DeviceHandle handle, unsigned* mw) {
  return answer(handle, mw, [](const DeviceModel& d) {
    return to_milliwatts(gpoeo::Watts(d.limit_default_w));
  });
}

Return nvmlDeviceGetPowerManagementLimitConstraints(DeviceHandle handle, unsigned* min_mw,
                                                    unsigned* max_mw) {
  return on_card(
      handle,
      [&](const CardFront& card) {
        *min_mw = to_milliwatts(gpoeo::Watts(card.device().limit_min_w));
        *max_mw = to_milliwatts(gpoeo::Watts(card.device().limit_max_w));
        return kSuccess;
      },
      min_mw, max_mw);
}

Return nvmlDeviceSetPowerManagementLimit(DeviceHandle handle, unsigned mw) {
  return set_limit(handle, mw);
}

Return nvmlDeviceSetPowerManagementLimit_v2(DeviceHandle handle, PowerValue* value) {
  constexpr unsigned char kScopeGpu = 0;
  return on_card(
      handle,
      [&](const CardFront&) {
        if (value->version != version_word<PowerValue>(2)) return kArgumentVersionMismatch;
        if (value->scope != kScopeGpu) return kNotSupported;
        return set_limit(handle, value->milliwatts);
      },
      value);
}

}  // extern "C"
