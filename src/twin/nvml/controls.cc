// SPDX-License-Identifier: Apache-2.0
// Setting clocks. Rights, ranges and rounding are the card's (twin/card_front.h).
#include "twin/nvml/clocks.h"

using namespace gpoeo::nvml_abi;
using namespace gpoeo::twin;
using namespace gpoeo::twin::front;

namespace {

// Instead of a clock in MHz, NVML takes these: the card's base for its power class, and no limit.
constexpr unsigned kLimitTdp = 0xFFFFFF01;
constexpr unsigned kLimitUnlimited = 0xFFFFFF02;

unsigned resolved_mhz(unsigned mhz, const DeviceModel& device) {
  if (mhz == kLimitUnlimited) return top_sm_mhz(device);
  if (mhz == kLimitTdp) {
    return static_cast<unsigned>(device.sm_mhz[static_cast<std::size_t>(device.default_sm)]);
  }
  return mhz;
}

gpoeo::gpu::ClockRange range_of(unsigned min_mhz, unsigned max_mhz) {
  return {gpoeo::megahertz(min_mhz), gpoeo::megahertz(max_mhz)};
}

}  // namespace

extern "C" {

Return nvmlDeviceSetGpuLockedClocks(DeviceHandle handle, unsigned min_mhz, unsigned max_mhz) {
  return on_card(handle, [&](const CardFront& card) {
    return to_return(card.lock_sm_clocks(
        range_of(resolved_mhz(min_mhz, card.device()), resolved_mhz(max_mhz, card.device()))));
  });
}

Return nvmlDeviceResetGpuLockedClocks(DeviceHandle handle) {
  return on_card(handle, [](const CardFront& card) { return to_return(card.reset_sm_clocks()); });
}

Return nvmlDeviceSetMemoryLockedClocks(DeviceHandle handle, unsigned min_mhz, unsigned max_mhz) {
  return on_card(handle, [&](const CardFront& card) {
    return to_return(card.lock_memory_clocks(range_of(min_mhz, max_mhz)));
  });
}

Return nvmlDeviceResetMemoryLockedClocks(DeviceHandle handle) {
  return on_card(handle,
                 [](const CardFront& card) { return to_return(card.reset_memory_clocks()); });
}

// Application clocks (deprecated since driver 570) are modelled as an upper bound of the SM clock
// and a lock of the memory clock, which is what they do under load.
Return nvmlDeviceSetApplicationsClocks(DeviceHandle handle, unsigned memory_mhz,
                                       unsigned graphics_mhz) {
  return on_card(handle, [&](const CardFront& card) {
    const auto lowest = static_cast<unsigned>(card.device().sm_mhz[0]);
    const Return memory = to_return(card.lock_memory_clocks(range_of(memory_mhz, memory_mhz)));
    // A card with one memory clock may not let it be set; at that clock there is nothing to do.
    const bool already = memory_mhz == static_cast<unsigned>(card.device().memory_mhz[0]);
    if (memory != kSuccess && !(memory == kNotSupported && already)) return memory;
    return to_return(card.lock_sm_clocks(range_of(lowest, graphics_mhz)));
  });
}

Return nvmlDeviceResetApplicationsClocks(DeviceHandle handle) {
  return on_card(handle, [](const CardFront& card) {
    const Return memory = to_return(card.reset_memory_clocks());
    const Return sm = to_return(card.reset_sm_clocks());
    return sm == kSuccess && memory != kNotSupported ? memory : sm;
  });
}

}  // extern "C"
