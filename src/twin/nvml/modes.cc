// SPDX-License-Identifier: Apache-2.0
// Modes that a twin has in one way only: no MIG, no display, exclusive use by nobody.
#include "twin/nvml/front.h"

using namespace gpoeo::nvml_abi;
using namespace gpoeo::twin;
using namespace gpoeo::twin::front;

namespace {

// Cards from Volta on are modelled with ECC on, as the H200 reports it; older ones lack it.
constexpr int kFirstWithEcc = 5;
// From Ampere on there is a MIG mode to be off; before, the question itself is not supported.
bool has_mig(const DeviceModel& device) {
  return device.cuda_major >= 9 || (device.cuda_major == 8 && device.cuda_minor == 0);
}

Return zero(DeviceHandle handle, unsigned* out) noexcept {
  return answer(handle, out, [](const DeviceModel&) { return 0; });
}
Return one(DeviceHandle handle, unsigned* out) noexcept {
  return answer(handle, out, [](const DeviceModel&) { return 1; });
}

}  // namespace

extern "C" {

Return nvmlDeviceGetPersistenceMode(DeviceHandle handle, unsigned* mode) {
  return one(handle, mode);
}
// A twin is always persistent: switching it on, as tools do when they start, changes nothing.
Return nvmlDeviceSetPersistenceMode(DeviceHandle handle, unsigned mode) {
  return on_card(handle, [&](const CardFront&) {
    if (mode > 1) return kInvalidArgument;
    return mode == 1 ? kSuccess : kNotSupported;
  });
}
Return nvmlDeviceGetComputeMode(DeviceHandle handle, unsigned* mode) { return zero(handle, mode); }
Return nvmlDeviceGetDisplayMode(DeviceHandle handle, unsigned* mode) { return zero(handle, mode); }
Return nvmlDeviceGetDisplayActive(DeviceHandle handle, unsigned* mode) {
  return zero(handle, mode);
}
Return nvmlDeviceGetAccountingMode(DeviceHandle handle, unsigned* mode) {
  return zero(handle, mode);
}
Return nvmlDeviceGetVirtualizationMode(DeviceHandle handle, unsigned* mode) {
  return zero(handle, mode);
}
Return nvmlDeviceGetPowerSource(DeviceHandle handle, unsigned* source) {
  return zero(handle, source);  // from the mains
}
Return nvmlDeviceGetNumFans(DeviceHandle handle, unsigned* fans) { return zero(handle, fans); }
Return nvmlDeviceIsMigDeviceHandle(DeviceHandle handle, unsigned* is_mig) {
  return zero(handle, is_mig);
}
Return nvmlDeviceGetMaxMigDeviceCount(DeviceHandle handle, unsigned* count) {
  return zero(handle, count);
}

Return nvmlDeviceGetMigMode(DeviceHandle handle, unsigned* current, unsigned* pending) {
  return on_card(
      handle,
      [&](const CardFront& card) {
        if (!has_mig(card.device())) return kNotSupported;
        *current = *pending = 0;
        return kSuccess;
      },
      current, pending);
}

Return nvmlDeviceGetEccMode(DeviceHandle handle, unsigned* current, unsigned* pending) {
  return on_card(
      handle,
      [&](const CardFront& card) {
        if (card.device().architecture < kFirstWithEcc) return kNotSupported;
        *current = *pending = 1;
        return kSuccess;
      },
      current, pending);
}
Return nvmlDeviceGetDefaultEccMode(DeviceHandle handle, unsigned* mode) {
  unsigned pending = 0;
  return nvmlDeviceGetEccMode(handle, mode, &pending);
}
// A twin has no memory errors.
Return nvmlDeviceGetTotalEccErrors(DeviceHandle handle, unsigned error_type, unsigned counter_type,
                                   unsigned long long* count) {
  return on_card(
      handle,
      [&](const CardFront& card) {
        if (error_type > 1 || counter_type > 1) return kInvalidArgument;
        if (card.device().architecture < kFirstWithEcc) return kNotSupported;
        *count = 0;
        return kSuccess;
      },
      count);
}

// Engines that no job of the twin uses.
static Return unused_engine(DeviceHandle handle, unsigned* utilization, unsigned* period_us) {
  constexpr unsigned kPeriodUs = 100'000;  // the H200's
  return on_card(
      handle,
      [&](const CardFront&) {
        *utilization = 0;
        *period_us = kPeriodUs;
        return kSuccess;
      },
      utilization, period_us);
}
Return nvmlDeviceGetEncoderUtilization(DeviceHandle handle, unsigned* u, unsigned* period_us) {
  return unused_engine(handle, u, period_us);
}
Return nvmlDeviceGetDecoderUtilization(DeviceHandle handle, unsigned* u, unsigned* period_us) {
  return unused_engine(handle, u, period_us);
}
Return nvmlDeviceGetJpgUtilization(DeviceHandle handle, unsigned* u, unsigned* period_us) {
  return unused_engine(handle, u, period_us);
}
Return nvmlDeviceGetOfaUtilization(DeviceHandle handle, unsigned* u, unsigned* period_us) {
  return unused_engine(handle, u, period_us);
}

}  // extern "C"
