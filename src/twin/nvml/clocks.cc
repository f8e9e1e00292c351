// SPDX-License-Identifier: Apache-2.0
// Clocks: what runs, what there is, and why it is where it is.
#include "twin/nvml/clocks.h"

#include <algorithm>
#include <cmath>

using namespace gpoeo::nvml_abi;
using namespace gpoeo::twin;
using namespace gpoeo::twin::front;

namespace gpoeo::twin::front {

unsigned video_mhz(unsigned sm_mhz) {
  constexpr double kShare = 0.78;  // 1545 of 1980 MHz on an H200
  return static_cast<unsigned>(std::lround(sm_mhz * kShare / 15)) * 15;
}

unsigned top_sm_mhz(const DeviceModel& device) {
  return static_cast<unsigned>(device.sm_mhz[static_cast<std::size_t>(device.sm_clock_count - 1)]);
}

int performance_state(const DeviceModel& device, unsigned memory_mhz) {
  constexpr int kIdleState = 8;
  for (int m = 0; m < device.memory_clock_count; ++m) {
    if (device.memory_mhz[static_cast<std::size_t>(m)] != static_cast<int>(memory_mhz)) continue;
    if (m > 1 && m == device.memory_clock_count - 1) return kIdleState;
    return std::min(2 * m, kIdleState - 1);
  }
  return 0;
}

}  // namespace gpoeo::twin::front

namespace {

constexpr unsigned kStateUnknown = 32;
constexpr unsigned long long kAllReasons = 511;  // as the H200

gpoeo::Result<unsigned> current_mhz(const CardFront& card, ClockType type) {
  const auto clock = type == kClockMemory ? card.memory_clock() : card.sm_clock();
  if (!clock) return std::unexpected(clock.error());
  const unsigned mhz = to_mhz_number(*clock);
  return type == kClockVideo ? video_mhz(mhz) : mhz;
}

unsigned max_mhz(const DeviceModel& device, ClockType type) {
  if (type == kClockMemory) return static_cast<unsigned>(device.memory_mhz[0]);
  const unsigned sm = top_sm_mhz(device);
  return type == kClockVideo ? video_mhz(sm) : sm;
}

unsigned default_mhz(const DeviceModel& device, ClockType type) {
  if (type == kClockMemory) return static_cast<unsigned>(device.memory_mhz[0]);
  const auto sm = static_cast<unsigned>(device.sm_mhz[static_cast<std::size_t>(device.default_sm)]);
  return type == kClockVideo ? video_mhz(sm) : sm;
}

// Application clocks are modelled as locks (controls.cc): the target is the lock's upper end.
gpoeo::Result<unsigned> application_mhz(const CardFront& card, ClockType type) {
  const auto locks = card.read_locks();
  if (!locks) return std::unexpected(locks.error());
  const auto& lock = type == kClockMemory ? locks->memory : locks->sm;
  return lock ? to_mhz_number(lock->max) : default_mhz(card.device(), type);
}

template <typename Read>
Return clock_answer(DeviceHandle handle, ClockType type, unsigned* out, Read read) noexcept {
  return on_card(
      handle,
      [&](const CardFront& card) {
        if (type >= kClockTypeCount) return kInvalidArgument;
        return give(gpoeo::Result<unsigned>(read(card)), out, [](unsigned mhz) { return mhz; });
      },
      out);
}

// The list protocol of the supported clocks: *count is room, then number. A null list asks for the
// number alone.
Return give_clocks(unsigned number, unsigned* count, unsigned* list, auto clock_at) {
  const unsigned room = *count;
  *count = number;
  if (list == nullptr || room < number) return kInsufficientSize;
  for (unsigned i = 0; i < number; ++i) list[i] = static_cast<unsigned>(clock_at(i));
  return kSuccess;
}

int memory_index(const DeviceModel& device, unsigned mhz) {
  for (int m = 0; m < device.memory_clock_count; ++m) {
    if (device.memory_mhz[static_cast<std::size_t>(m)] == static_cast<int>(mhz)) return m;
  }
  return -1;
}

}  // namespace

extern "C" {

Return nvmlDeviceGetClockInfo(DeviceHandle handle, ClockType type, unsigned* mhz) {
  return clock_answer(handle, type, mhz,
                      [&](const CardFront& card) { return current_mhz(card, type); });
}
Return nvmlDeviceGetMaxClockInfo(DeviceHandle handle, ClockType type, unsigned* mhz) {
  return clock_answer(handle, type, mhz,
                      [&](const CardFront& card) { return max_mhz(card.device(), type); });
}
Return nvmlDeviceGetMaxCustomerBoostClock(DeviceHandle handle, ClockType type, unsigned* mhz) {
  return nvmlDeviceGetMaxClockInfo(handle, type, mhz);
}
Return nvmlDeviceGetApplicationsClock(DeviceHandle handle, ClockType type, unsigned* mhz) {
  return clock_answer(handle, type, mhz,
                      [&](const CardFront& card) { return application_mhz(card, type); });
}
Return nvmlDeviceGetDefaultApplicationsClock(DeviceHandle handle, ClockType type, unsigned* mhz) {
  return clock_answer(handle, type, mhz,
                      [&](const CardFront& card) { return default_mhz(card.device(), type); });
}

Return nvmlDeviceGetClock(DeviceHandle handle, ClockType type, ClockId id, unsigned* mhz) {
  switch (id) {
    case kClockCurrent:
      return nvmlDeviceGetClockInfo(handle, type, mhz);
    case kClockAppTarget:
      return nvmlDeviceGetApplicationsClock(handle, type, mhz);
    case kClockAppDefault:
      return nvmlDeviceGetDefaultApplicationsClock(handle, type, mhz);
    case kClockCustomerBoostMax:
      return nvmlDeviceGetMaxCustomerBoostClock(handle, type, mhz);
    default:
      return on_card(handle, [](const CardFront&) { return kInvalidArgument; });
  }
}

Return nvmlDeviceGetSupportedMemoryClocks(DeviceHandle handle, unsigned* count, unsigned* mhz) {
  return on_card(
      handle,
      [&](const CardFront& card) {
        const DeviceModel& device = card.device();
        return give_clocks(static_cast<unsigned>(device.memory_clock_count), count, mhz,
                           [&](unsigned i) { return device.memory_mhz[i]; });
      },
      count);
}

Return nvmlDeviceGetSupportedGraphicsClocks(DeviceHandle handle, unsigned memory_mhz,
                                            unsigned* count, unsigned* mhz) {
  return on_card(
      handle,
      [&](const CardFront& card) {
        const DeviceModel& device = card.device();
        const int m = memory_index(device, memory_mhz);
        if (m < 0) return kNotFound;
        const auto first = static_cast<unsigned>(device.sm_first[static_cast<std::size_t>(m)]);
        const auto number = static_cast<unsigned>(device.sm_number[static_cast<std::size_t>(m)]);
        return give_clocks(number, count, mhz, [&](unsigned i) {
          return device.sm_mhz[first + number - 1 - i];  // highest first
        });
      },
      count);
}

Return nvmlDeviceGetCurrentClocksEventReasons(DeviceHandle handle, unsigned long long* reasons) {
  return on_card(
      handle,
      [&](const CardFront& card) {
        return give(card.event_reasons(), reasons,
                    [](gpoeo::gpu::EventReasons r) { return r.bits; });
      },
      reasons);
}
Return nvmlDeviceGetCurrentClocksThrottleReasons(DeviceHandle handle, unsigned long long* reasons) {
  return nvmlDeviceGetCurrentClocksEventReasons(handle, reasons);
}
Return nvmlDeviceGetSupportedClocksEventReasons(DeviceHandle handle, unsigned long long* reasons) {
  return answer(handle, reasons, [](const DeviceModel&) { return kAllReasons; });
}
Return nvmlDeviceGetSupportedClocksThrottleReasons(DeviceHandle handle,
                                                   unsigned long long* reasons) {
  return nvmlDeviceGetSupportedClocksEventReasons(handle, reasons);
}

Return nvmlDeviceGetPerformanceState(DeviceHandle handle, unsigned* state) {
  return on_card(
      handle,
      [&](const CardFront& card) {
        return give(card.memory_clock(), state, [&](gpoeo::Hertz memory) {
          return static_cast<unsigned>(performance_state(card.device(), to_mhz_number(memory)));
        });
      },
      state);
}
Return nvmlDeviceGetPowerState(DeviceHandle handle, unsigned* state) {
  return nvmlDeviceGetPerformanceState(handle, state);
}

// `size` is in bytes; the list ends with "unknown".
Return nvmlDeviceGetSupportedPerformanceStates(DeviceHandle handle, unsigned* states,
                                               unsigned size) {
  return on_card(
      handle,
      [&](const CardFront& card) {
        const DeviceModel& device = card.device();
        const auto room = size / sizeof(unsigned);
        const auto number = static_cast<unsigned>(device.memory_clock_count);
        if (room < number) return kInsufficientSize;
        for (unsigned i = 0; i < room; ++i) {
          states[i] = i < number ? static_cast<unsigned>(performance_state(
                                       device, static_cast<unsigned>(device.memory_mhz[i])))
                                 : kStateUnknown;
        }
        return kSuccess;
      },
      states);
}

Return nvmlDeviceGetMinMaxClockOfPState(DeviceHandle handle, ClockType type, unsigned state,
                                        unsigned* min_mhz, unsigned* top_mhz) {
  return on_card(
      handle,
      [&](const CardFront& card) {
        if (type >= kClockTypeCount) return kInvalidArgument;
        const DeviceModel& device = card.device();
        for (int m = 0; m < device.memory_clock_count; ++m) {
          const auto i = static_cast<std::size_t>(m);
          const auto memory = static_cast<unsigned>(device.memory_mhz[i]);
          if (performance_state(device, memory) != static_cast<int>(state)) continue;
          const auto first = static_cast<std::size_t>(device.sm_first[i]);
          const auto last = first + static_cast<std::size_t>(device.sm_number[i]) - 1;
          unsigned low = static_cast<unsigned>(device.sm_mhz[first]);
          unsigned high = static_cast<unsigned>(device.sm_mhz[last]);
          if (type == kClockMemory) low = high = memory;
          if (type == kClockVideo) {
            low = video_mhz(low);
            high = video_mhz(high);
          }
          *min_mhz = low;
          *top_mhz = high;
          return kSuccess;
        }
        return kNotSupported;
      },
      min_mhz, top_mhz);
}

Return nvmlDeviceGetAdaptiveClockInfoStatus(DeviceHandle handle, unsigned* status) {
  return answer(handle, status, [](const DeviceModel&) { return 1; });
}

}  // extern "C"
