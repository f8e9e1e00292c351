// SPDX-License-Identifier: Apache-2.0
// The producer's side of the progress ring, for code inside the job's process.
#pragma once

#include <string>

#include "base/result.h"
#include "wire/progress_ring.h"

namespace gpoeo::wire {

// Thread rule: push() and the marks may be called from any thread; they neither block, allocate
// nor call the system. After a fork the child must not use its parent's writer.
class RingWriter {
 public:
  // Creates `<folder>/<pid>.ring`, mode 0600. `unix_offset_ns` turns the stamps given to push()
  // into nanoseconds since the epoch.
  static Result<RingWriter> create(const std::string& folder, RingProducer producer,
                                   std::int64_t unix_offset_ns,
                                   std::uint32_t capacity = kDefaultRingCapacity);
  RingWriter(RingWriter&& other) noexcept;
  RingWriter& operator=(RingWriter&&) = delete;
  RingWriter(const RingWriter&) = delete;
  // Marks the ring ended and unmaps it; the file stays for the reader to drain and remove.
  ~RingWriter();

  // False when the ring is full: the record is dropped and counted.
  bool push(RecordKind kind, std::int64_t t_ns, std::uint64_t function_id, std::uint32_t stream);
  void set_state(RingState state);

 private:
  explicit RingWriter(unsigned char* base, std::uint32_t capacity)
      : base_(base), capacity_(capacity) {}
  template <typename T>
  std::atomic<T>& atomic_at(std::size_t offset) {
    static_assert(std::atomic<T>::is_always_lock_free && sizeof(std::atomic<T>) == sizeof(T));
    return *reinterpret_cast<std::atomic<T>*>(base_ + offset);
  }

  unsigned char* base_ = nullptr;
  std::uint32_t capacity_ = 0;
};

}  // namespace gpoeo::wire
