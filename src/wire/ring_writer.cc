// SPDX-License-Identifier: Apache-2.0
#include "wire/ring_writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/file.h"

namespace gpoeo::wire {

Result<RingWriter> RingWriter::create(const std::string& folder, RingProducer producer,
                                      std::int64_t unix_offset_ns, std::uint32_t capacity) {
  GPOEO_CHECK(std::has_single_bit(capacity) && capacity <= kMaxRingCapacity);
  const std::string path = folder + "/" + std::to_string(::getpid()) + kRingSuffix;
  const std::string unfinished = path + ".new";
  const std::size_t bytes = ring_file_bytes(capacity);

  // A reader looks for names that end in .ring: it must never meet a half-written header.
  const Fd file(
      ::open(unfinished.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return errno_error(unfinished, errno);
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
    return errno_error(unfinished, errno);
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (base == MAP_FAILED) return errno_error(unfinished, errno);

  RingWriter writer(static_cast<unsigned char*>(base), capacity);
  RingHeader header;
  header.capacity = capacity;
  header.producer = producer;
  header.pid = ::getpid();
  header.unix_offset_ns = unix_offset_ns;
  std::memcpy(base, &header, sizeof header);
  writer.set_state(RingState::kRunning);
  if (::rename(unfinished.c_str(), path.c_str()) != 0) return errno_error(path, errno);
  return writer;
}

RingWriter::RingWriter(RingWriter&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), capacity_(other.capacity_) {}

RingWriter::~RingWriter() {
  if (base_ == nullptr) return;
  set_state(RingState::kEnded);
  ::munmap(base_, ring_file_bytes(capacity_));
}

bool RingWriter::push(RecordKind kind, std::int64_t t_ns, std::uint64_t function_id,
                      std::uint32_t stream) {
  auto& head = atomic_at<std::uint64_t>(kHeadOffset);
  const auto& tail = atomic_at<std::uint64_t>(kTailOffset);
  std::uint64_t number = head.load(std::memory_order_relaxed);
  do {
    // A reader that wrote nonsense into tail makes the difference huge: dropped, never overwritten.
    if (number - tail.load(std::memory_order_acquire) >= capacity_) {
      atomic_at<std::uint64_t>(kDroppedOffset).fetch_add(1, std::memory_order_relaxed);
      return false;
    }
  } while (!head.compare_exchange_weak(number, number + 1, std::memory_order_relaxed));

  const std::size_t offset = kRecordsOffset + (number & (capacity_ - 1)) * sizeof(RingRecord);
  auto* record = reinterpret_cast<RingRecord*>(base_ + offset);
  record->t_ns = t_ns;
  record->function_id = function_id;
  record->kind = kind;
  record->stream = stream;
  atomic_at<std::uint64_t>(offset).store(number + 1, std::memory_order_release);
  return true;
}

void RingWriter::set_state(RingState state) {
  atomic_at<std::uint32_t>(kStateOffset)
      .store(static_cast<std::uint32_t>(state), std::memory_order_release);
}

}  // namespace gpoeo::wire
