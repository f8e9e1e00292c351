// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <time.h>

#include <algorithm>

namespace gpoeo {
namespace {

Duration read_clock(clockid_t id) {
  timespec t{};
  clock_gettime(id, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

}  // namespace

RealClock::RealClock() : offset_(read_clock(CLOCK_REALTIME) - read_clock(CLOCK_MONOTONIC)) {}

Instant RealClock::now() const { return Instant(read_clock(CLOCK_MONOTONIC) + offset_); }

void RealClock::sleep_until(Instant t, const StopFlag& stop) {
  constexpr Duration kSlice = std::chrono::milliseconds(20);
  for (Instant at = now(); at < t && !stop.requested(); at = now()) {
    const Duration wait = std::min(kSlice, t - at);
    const timespec request{.tv_sec = 0, .tv_nsec = static_cast<long>(wait.count())};
    nanosleep(&request, nullptr);
  }
}

void VirtualClock::sleep_until(Instant t, const StopFlag& /*stop*/) { now_ = std::max(now_, t); }

}  // namespace gpoeo
