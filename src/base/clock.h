// SPDX-License-Identifier: Apache-2.0
// Time. Every loop and every measurement takes a Clock, so that tests and `bench` run on virtual
// time and a simulated GPU can run faster than the wall.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/units.h"

namespace gpoeo {

// One time scale for all of a session: nanoseconds since the Unix epoch, but never stepping back
// and not following later adjustments of the system's clock. NVML sample time stamps, launch
// records and our own readings all come to this scale at the adapter that reads them.
struct TimelineTag {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  static constexpr bool is_steady = true;
};
using Duration = std::chrono::nanoseconds;
using Instant = std::chrono::time_point<TimelineTag, Duration>;

constexpr Instant instant_from_ns(std::int64_t unix_ns) { return Instant(Duration(unix_ns)); }
constexpr std::int64_t to_unix_ns(Instant t) { return t.time_since_epoch().count(); }
constexpr Seconds to_seconds(Duration d) { return Seconds(static_cast<double>(d.count()) * 1e-9); }
constexpr Duration to_duration(Seconds s) {
  return Duration(static_cast<std::int64_t>(s.value() * 1e9 + (s.value() < 0 ? -0.5 : 0.5)));
}

// Asked to stop, once and for all. request() may be called from any thread and from a signal
// handler; it wakes everybody who waits.
class StopFlag {
 public:
  StopFlag();
  ~StopFlag();
  StopFlag(const StopFlag&) = delete;
  StopFlag& operator=(const StopFlag&) = delete;

  void request();
  bool requested() const { return requested_.load(std::memory_order_acquire); }
  // Returns after `wall` of wall time, or as soon as a stop is requested.
  void wait_for(Duration wall) const;

 private:
  std::atomic<bool> requested_{false};
  int event_;  // an eventfd: readable for good once a stop was requested
};

// Thread rule: now() may be called from any thread; sleep_until() from any thread of a real
// clock, and only from the one driving thread of a virtual clock.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant now() const = 0;
  // Returns at `t` or when `stop` is requested, whichever is first; at once when `t` has passed.
  virtual void sleep_until(Instant t, const StopFlag& stop) = 0;
};

// CLOCK_MONOTONIC shifted to the Unix epoch once, at construction.
class RealClock final : public Clock {
 public:
  RealClock();
  Instant now() const override;
  void sleep_until(Instant t, const StopFlag& stop) override;
  // Unix time minus CLOCK_MONOTONIC: add it to a CLOCK_MONOTONIC stamp to get an Instant.
  Duration monotonic_offset() const { return offset_; }

 private:
  Duration offset_{};
};

// Time that moves only when told to: sleeping is advancing.
class VirtualClock final : public Clock {
 public:
  explicit VirtualClock(Instant start = instant_from_ns(1'700'000'000'000'000'000)) : now_(start) {}
  Instant now() const override { return now_; }
  void sleep_until(Instant t, const StopFlag& stop) override;
  void advance(Duration d) { now_ += d; }

 private:
  Instant now_;
};

}  // namespace gpoeo
