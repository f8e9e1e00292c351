// SPDX-License-Identifier: Apache-2.0
// The producer's side of the progress ring, for our own programs: RingMapping with an owner.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"
#include "wire/ring_mapping.h"

namespace gpoeo::wire {

// Thread rule: as RingMapping's.
class RingWriter {
 public:
  // Creates `<folder>/<pid>.ring`; see RingMapping::create().
  static Result<RingWriter> create(const std::string& folder, RingProducer producer,
                                   std::int64_t unix_offset_ns,
                                   std::uint32_t capacity = kDefaultRingCapacity);
  RingWriter(RingWriter&& other) noexcept : ring_(std::exchange(other.ring_, {})) {}
  RingWriter& operator=(RingWriter&&) = delete;
  RingWriter(const RingWriter&) = delete;
  // Marks the ring ended and unmaps it; the file stays for the reader to drain and remove.
  ~RingWriter();

  bool push(RecordKind kind, std::int64_t t_ns, std::uint64_t function_id, std::uint32_t stream) {
    return ring_.push(kind, t_ns, function_id, stream);
  }
  void set_state(RingState state, QuietReason reason = QuietReason::kNone) {
    ring_.set_state(state, reason);
  }
  RingMapping& mapping() { return ring_; }

 private:
  explicit RingWriter(RingMapping ring) : ring_(ring) {}

  RingMapping ring_;
};

}  // namespace gpoeo::wire
