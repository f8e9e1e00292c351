// SPDX-License-Identifier: Apache-2.0
#include "wire/ring_writer.h"

namespace gpoeo::wire {

Result<RingWriter> RingWriter::create(const std::string& folder, RingProducer producer,
                                      std::int64_t unix_offset_ns, std::uint32_t capacity) {
  RingMapping ring;
  if (const int error =
          ring.create(folder.c_str(), kRingSuffix, producer, unix_offset_ns, capacity);
      error != 0) {
    return errno_error(folder, error);
  }
  return RingWriter(ring);
}

RingWriter::~RingWriter() {
  if (!ring_) return;
  ring_.set_state(RingState::kEnded);
  ring_.unmap();
}

}  // namespace gpoeo::wire
