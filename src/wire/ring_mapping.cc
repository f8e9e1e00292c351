// SPDX-License-Identifier: Apache-2.0
#include "wire/ring_mapping.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace gpoeo::wire {
namespace {

bool is_power_of_two(std::uint32_t n) { return n != 0 && (n & (n - 1)) == 0; }

bool fits(int printed, std::size_t room) {
  return printed > 0 && static_cast<std::size_t>(printed) < room;
}

}  // namespace

int RingMapping::create(const char* folder, const char* suffix, RingProducer producer,
                        std::int64_t unix_offset_ns, std::uint32_t capacity) {
  if (base_ != nullptr || !is_power_of_two(capacity) || capacity > kMaxRingCapacity) return EINVAL;
  char path[PATH_MAX];
  char unfinished[PATH_MAX];
  const long pid = ::getpid();
  if (!fits(::snprintf(path, sizeof path, "%s/%ld%s", folder, pid, suffix), sizeof path) ||
      !fits(::snprintf(unfinished, sizeof unfinished, "%s/%ld%s.new", folder, pid, suffix),
            sizeof unfinished)) {
    return ENAMETOOLONG;
  }
  const std::size_t bytes = ring_file_bytes(capacity);

  // A reader looks for names that end in .ring: it must never meet a half-written header.
  const int file =
      ::open(unfinished, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (file < 0) return errno;
  int error = ::posix_fallocate(file, 0, static_cast<off_t>(bytes));
  void* base = MAP_FAILED;
  if (error == 0) {
    // Populated: the first launches of a job meet no page faults.
    base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    if (base == MAP_FAILED) error = errno;
  }
  ::close(file);
  if (error != 0) {
    ::unlink(unfinished);
    return error;
  }

  base_ = static_cast<unsigned char*>(base);
  capacity_ = capacity;
  RingHeader header;
  header.capacity = capacity;
  header.producer = producer;
  header.pid = pid;
  header.unix_offset_ns = unix_offset_ns;
  ::memcpy(base, &header, sizeof header);
  set_state(RingState::kRunning);
  if (::rename(unfinished, path) != 0) {
    error = errno;
    ::unlink(unfinished);
    unmap();
  }
  return error;
}

void RingMapping::unmap() {
  if (base_ == nullptr) return;
  ::munmap(base_, ring_file_bytes(capacity_));
  base_ = nullptr;
  capacity_ = 0;
}

void RingMapping::set_state(RingState state, QuietReason reason) const {
  at<std::uint32_t>(kReasonOffset)
      .store(static_cast<std::uint32_t>(reason), std::memory_order_relaxed);
  at<std::uint32_t>(kStateOffset)
      .store(static_cast<std::uint32_t>(state), std::memory_order_release);
}

void RingMapping::publish_counters(const CounterBlock& answer) const {
  auto& sequence = at<std::uint64_t>(kCountersOffset);
  const std::uint64_t before = sequence.load(std::memory_order_relaxed) & ~std::uint64_t{1};
  sequence.store(before + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  constexpr std::size_t kSkip = sizeof answer.sequence;
  ::memcpy(base_ + kCountersOffset + kSkip, reinterpret_cast<const char*>(&answer) + kSkip,
           sizeof answer - kSkip);
  sequence.store(before + 2, std::memory_order_release);
}

}  // namespace gpoeo::wire
