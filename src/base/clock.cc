// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/result.h"

namespace gpoeo {
namespace {

Duration read_clock(clockid_t id) {
  timespec t{};
  clock_gettime(id, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

}  // namespace

StopFlag::StopFlag() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  GPOEO_CHECK(event_ >= 0);
}

StopFlag::~StopFlag() { ::close(event_); }

void StopFlag::request() {
  requested_.store(true, std::memory_order_release);
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event_, &one, sizeof one);
}

void StopFlag::wait_for(Duration wall) const {
  if (wall <= Duration::zero()) return;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(wall);
  const timespec timeout{.tv_sec = seconds.count(), .tv_nsec = (wall - seconds).count()};
  pollfd event{.fd = event_, .events = POLLIN, .revents = 0};
  ::ppoll(&event, 1, &timeout, nullptr);
}

RealClock::RealClock() : offset_(read_clock(CLOCK_REALTIME) - read_clock(CLOCK_MONOTONIC)) {}

Instant RealClock::now() const { return Instant(read_clock(CLOCK_MONOTONIC) + offset_); }

void RealClock::sleep_until(Instant t, const StopFlag& stop) {
  for (Instant at = now(); at < t && !stop.requested(); at = now()) stop.wait_for(t - at);
}

void VirtualClock::sleep_until(Instant t, const StopFlag& /*stop*/) { now_ = std::max(now_, t); }

}  // namespace gpoeo
