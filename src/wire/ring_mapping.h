// SPDX-License-Identifier: Apache-2.0
// The producer's side of the progress ring, bare: for code that lives inside somebody else's
// program (libgpoeo_inject.so, libgpoeo.so). Trivially destructible, no exceptions, no allocation,
// and nothing but the C library. RingWriter wraps it for our own programs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "wire/progress_ring.h"

namespace gpoeo::wire {

// Thread rule: everything but create() may be called from any thread; nothing blocks, allocates or
// calls the system. A child after fork() shares its parent's pages: it must not push.
class RingMapping {
 public:
  constexpr RingMapping() = default;

  // Creates `<folder>/<pid><suffix>`, mode 0600, all its pages there (a full /dev/shm is an error
  // now and not a SIGBUS later). 0, or the errno of what failed; then the mapping stays empty.
  // `unix_offset_ns` turns the stamps given to push() into nanoseconds since the epoch.
  int create(const char* folder, const char* suffix, RingProducer producer,
             std::int64_t unix_offset_ns, std::uint32_t capacity);
  // Gives the pages back; the file stays for the reader to drain and remove.
  void unmap();
  explicit operator bool() const { return base_ != nullptr; }

  // Before what a record costs to make: true when the ring is full; that record is counted as
  // dropped and need not be pushed.
  bool drop_if_full() const {
    const std::uint64_t head = at<std::uint64_t>(kHeadOffset).load(std::memory_order_relaxed);
    if (!no_room_for(head)) return false;
    at<std::uint64_t>(kDroppedOffset).fetch_add(1, std::memory_order_relaxed);
    return true;
  }

  // False when the ring is full: the record is dropped and counted.
  bool push(RecordKind kind, std::int64_t t_ns, std::uint64_t function_id,
            std::uint32_t stream) const {
    auto& head = at<std::uint64_t>(kHeadOffset);
    std::uint64_t number = head.load(std::memory_order_relaxed);
    do {
      if (no_room_for(number)) {
        at<std::uint64_t>(kDroppedOffset).fetch_add(1, std::memory_order_relaxed);
        return false;
      }
    } while (!head.compare_exchange_weak(number, number + 1, std::memory_order_relaxed));

    const std::size_t offset = kRecordsOffset + (number & (capacity_ - 1)) * sizeof(RingRecord);
    auto* record = reinterpret_cast<RingRecord*>(base_ + offset);
    record->t_ns = t_ns;
    record->function_id = function_id;
    record->kind = kind;
    record->stream = stream;
    at<std::uint64_t>(offset).store(number + 1, std::memory_order_release);
    return true;
  }
  void set_state(RingState state, QuietReason reason = QuietReason::kNone) const;
  void set_cupti_version(std::uint32_t version) const {
    at<std::uint32_t>(kCuptiVersionOffset).store(version, std::memory_order_relaxed);
  }

  // The newest counter request; its number is one relaxed load.
  std::uint64_t requested_window() const {
    return at<std::uint64_t>(kRequestOffset + offsetof(CounterRequest, start))
        .load(std::memory_order_acquire);
  }
  std::uint64_t stopped_window() const {
    return at<std::uint64_t>(kRequestOffset + offsetof(CounterRequest, stop))
        .load(std::memory_order_acquire);
  }
  std::uint64_t most_window_ns() const {
    return at<std::uint64_t>(kRequestOffset + offsetof(CounterRequest, most_ns))
        .load(std::memory_order_acquire);
  }
  // Answers a request; `answer.sequence` is ours to set. One thread at a time.
  void publish_counters(const CounterBlock& answer) const;

 private:
  // A reader that wrote nonsense into tail makes the difference huge: dropped, never overwritten.
  bool no_room_for(std::uint64_t number) const {
    return number - at<std::uint64_t>(kTailOffset).load(std::memory_order_acquire) >= capacity_;
  }
  template <typename T>
  std::atomic<T>& at(std::size_t offset) const {
    static_assert(std::atomic<T>::is_always_lock_free && sizeof(std::atomic<T>) == sizeof(T));
    return *reinterpret_cast<std::atomic<T>*>(base_ + offset);
  }

  unsigned char* base_ = nullptr;
  std::uint32_t capacity_ = 0;
};

}  // namespace gpoeo::wire
