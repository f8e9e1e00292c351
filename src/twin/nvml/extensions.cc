// SPDX-License-Identifier: Apache-2.0
// What the vendor's library has not (gpu/nvml/abi.h declares the shapes).
#include "twin/nvml/front.h"

using namespace gpoeo::nvml_abi;
using namespace gpoeo::twin;
using namespace gpoeo::twin::front;

extern "C" {

const char* gpoeoTwinVersion() { return GPOEO_VERSION; }

Return gpoeoTwinNow(long long* now_ns) {
  return guarded([&](Segment& segment) {
    if (now_ns == nullptr) return kInvalidArgument;
    *now_ns = gpoeo::to_unix_ns(segment.now());
    return kSuccess;
  });
}

Return gpoeoTwinDeviceGetLockedClocks(DeviceHandle handle, ClockType type, unsigned* min_mhz,
                                      unsigned* max_mhz) {
  return on_card(
      handle,
      [&](const CardFront& card) {
        if (type >= kClockVideo) return kInvalidArgument;
        const auto locks = card.read_locks();
        if (!locks) return to_return(locks.error());
        const auto& lock = type == kClockMemory ? locks->memory : locks->sm;
        if (!lock) return kNotFound;
        *min_mhz = to_mhz_number(lock->min);
        *max_mhz = to_mhz_number(lock->max);
        return kSuccess;
      },
      min_mhz, max_mhz);
}

}  // extern "C"
