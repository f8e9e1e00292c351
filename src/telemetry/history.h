// SPDX-License-Identifier: Apache-2.0
// What one GPU said over the last minutes: bounded rings of readings, each with its time, oldest
// first. Plain data that the sampler fills; energy windows, iteration detection, settling and the
// trace file read it.
//
// Thread rule: the sampler's thread. References and indices are good until its next poll.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "gpu/types.h"

namespace gpoeo::telemetry {

// A bounded queue of things that have a `time`, ascending. When it is full the oldest goes.
template <typename T>
class TimeRing {
 public:
  explicit TimeRing(std::size_t capacity) : capacity_(capacity == 0 ? 1 : capacity) {}

  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  std::size_t capacity() const { return capacity_; }
  // 0 is the oldest.
  const T& operator[](std::size_t i) const { return items_[slot(i)]; }
  const T& front() const { return (*this)[0]; }
  const T& back() const { return (*this)[size() - 1]; }
  // How many were ever pushed; total_pushed() - size() is the sequence number of front(), so a
  // consumer can remember how far it has read.
  std::size_t total_pushed() const { return total_pushed_; }

  void push(T item) {
    if (items_.size() < capacity_) {
      items_.push_back(std::move(item));
    } else {
      items_[begin_] = std::move(item);
      begin_ = (begin_ + 1) % capacity_;
    }
    ++total_pushed_;
  }
  // Index of the first item later than `t`; size() when there is none.
  std::size_t first_after(Instant t) const {
    std::size_t low = 0;
    std::size_t high = size();
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if ((*this)[middle].time > t) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

 private:
  std::size_t slot(std::size_t i) const {
    const std::size_t s = begin_ + i;
    return s < items_.size() ? s : s - items_.size();
  }

  std::size_t capacity_;
  std::size_t begin_ = 0;
  std::size_t total_pushed_ = 0;
  std::vector<T> items_;
};

// One call of the energy counter: the value was latched at some time in [before, time].
struct CounterReading {
  Instant before;  // just before the call
  Instant time;    // just after it
  Joules energy;
};

// What one poll read besides power. Absent = not read in this poll, unsupported or failed.
struct StatusPoint {
  Instant time;
  std::optional<Hertz> sm_clock;
  std::optional<Hertz> memory_clock;
  std::optional<gpu::EventReasons> reasons;
  std::optional<gpu::Utilization> utilization;
  std::optional<Celsius> temperature;
};

struct CountersPoint {
  Instant time;  // end of the window that `counters` covers
  gpu::Counters counters;
};

// About 1.6 MB at the default depths, which hold 10 minutes at 50 Hz power.
struct History {
  TimeRing<gpu::PowerSample> power{32768};
  TimeRing<StatusPoint> status{8192};
  TimeRing<CounterReading> energy{4096};
  TimeRing<CountersPoint> counters{1024};
  std::vector<gpu::ComputeProcess> processes;  // as last read
  std::optional<Instant> processes_time;
};

}  // namespace gpoeo::telemetry
