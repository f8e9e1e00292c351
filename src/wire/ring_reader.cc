// SPDX-License-Identifier: Apache-2.0
#include "wire/ring_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>

namespace gpoeo::wire {
namespace {

// Windows are bounded by what was asked for: seconds.
constexpr std::uint64_t kLongestCounterWindow_ns = 3'600'000'000'000;

Status read_exactly(int fd, void* to, std::size_t bytes, std::size_t offset,
                    const std::filesystem::path& path) {
  auto* out = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t n = ::pread(fd, out, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error(path.string(), errno);
    if (n == 0) {
      return make_error(ErrorKind::kInvalid,
                        fmt::format("{}: progress ring is cut short", path.string()));
    }
    out += n;
    offset += static_cast<std::size_t>(n);
    bytes -= static_cast<std::size_t>(n);
  }
  return {};
}

}  // namespace

Result<RingReader> RingReader::open(const std::filesystem::path& path) {
  Fd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return errno_error(path.string(), errno);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return errno_error(path.string(), errno);
  const auto refuse = [&](const std::string& why) {
    return make_error(ErrorKind::kInvalid,
                      fmt::format("{}: not a progress ring: {}", path.string(), why));
  };
  if (!S_ISREG(info.st_mode)) return refuse("not a regular file");

  RingHeader header;
  GPOEO_TRY_STATUS(read_exactly(file.get(), &header, sizeof header, 0, path));
  if (header.magic != kRingMagic) return refuse("wrong magic number");
  if (header.version != kRingVersion) {
    return refuse(
        fmt::format("version {}, this gpoeo reads version {}; update the older of the two",
                    header.version, kRingVersion));
  }
  if (header.record_bytes != sizeof(RingRecord)) return refuse("wrong record size");
  if (!std::has_single_bit(header.capacity) || header.capacity > kMaxRingCapacity) {
    return refuse(fmt::format("impossible capacity {}", header.capacity));
  }
  if (static_cast<std::size_t>(info.st_size) < ring_file_bytes(header.capacity)) {
    return refuse("file shorter than its capacity says");
  }
  return RingReader(std::move(file), header, path);
}

std::unexpected<Error> RingReader::corrupt(const std::string& why) const {
  return make_error(ErrorKind::kInvalid,
                    fmt::format("{}: corrupt progress ring: {}", path_.string(), why));
}

Result<std::uint64_t> RingReader::read_word(std::size_t offset) const {
  std::uint64_t word = 0;
  GPOEO_TRY_STATUS(read_exactly(file_.get(), &word, sizeof word, offset, path_));
  return word;
}

Status RingReader::write_word(std::size_t offset, std::uint64_t word) const {
  // Never beyond the end: a file that was cut short is not grown again.
  struct stat info {};
  if (::fstat(file_.get(), &info) != 0) return errno_error(path_.string(), errno);
  if (static_cast<std::size_t>(info.st_size) < offset + sizeof word) {
    return make_error(ErrorKind::kInvalid,
                      fmt::format("{}: progress ring is cut short", path_.string()));
  }
  if (::pwrite(file_.get(), &word, sizeof word, static_cast<off_t>(offset)) != sizeof word) {
    return errno_error(path_.string(), errno);
  }
  return {};
}

// Wraps instead of overflowing: both numbers come from the other process.
std::int64_t RingReader::on_timeline(std::int64_t t_ns) const {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(t_ns) +
                                   static_cast<std::uint64_t>(header_.unix_offset_ns));
}

Status RingReader::read_records(std::uint64_t first, std::uint64_t count) {
  window_.resize(count);
  window_first_ = first;
  const std::uint64_t slot = first & (header_.capacity - 1);
  const std::uint64_t before_wrap = std::min<std::uint64_t>(count, header_.capacity - slot);
  GPOEO_TRY_STATUS(read_exactly(file_.get(), window_.data(), before_wrap * sizeof(RingRecord),
                                kRecordsOffset + slot * sizeof(RingRecord), path_));
  return read_exactly(file_.get(), window_.data() + before_wrap,
                      (count - before_wrap) * sizeof(RingRecord), kRecordsOffset, path_);
}

bool RingReader::published(std::uint64_t number) const {
  return window_[number - window_first_].sequence == number + 1;
}

Status RingReader::drain(std::vector<RingRecord>& out) {
  GPOEO_TRY(const std::uint64_t head, read_word(kHeadOffset));
  GPOEO_TRY(dropped_, read_word(kDroppedOffset));
  std::uint32_t words[3] = {};  // state, reason, version of CUPTI
  static_assert(kReasonOffset == kStateOffset + 4 && kCuptiVersionOffset == kStateOffset + 8);
  GPOEO_TRY_STATUS(read_exactly(file_.get(), words, sizeof words, kStateOffset, path_));
  if (words[0] >= static_cast<std::uint32_t>(RingState::kRunning) &&
      words[0] <= static_cast<std::uint32_t>(RingState::kQuiet)) {
    state_ = static_cast<RingState>(words[0]);
  }
  if (words[1] <= kMostQuietReason) reason_ = static_cast<QuietReason>(words[1]);
  cupti_version_ = words[2];
  if (head < tail_ || head - tail_ > header_.capacity) {
    return corrupt(fmt::format("head {} with tail {}", head, tail_));
  }
  if (head == tail_) return {};

  // First look how far records are published, then read them again: on a weakly ordered machine a
  // record's fields may only be trusted when they were read after its sequence.
  GPOEO_TRY_STATUS(read_records(tail_, head - tail_));
  std::uint64_t end = tail_;
  while (end < head && published(end)) ++end;
  if (end == tail_) {
    // The oldest record is reserved but not filled. Give its producer until the next call, then
    // step over it: it was killed between the two.
    if (stuck_at_ != tail_) {
      stuck_at_ = tail_;
      return {};
    }
    ++torn_;
    ++end;
  } else {
    GPOEO_TRY_STATUS(read_records(tail_, end - tail_));
    for (RingRecord record : window_) {
      record.t_ns = on_timeline(record.t_ns);
      out.push_back(record);
    }
  }
  stuck_at_.reset();
  tail_ = end;
  return write_word(kTailOffset, tail_);
}

bool RingReader::is_file(const std::filesystem::path& path) const {
  struct stat ours {
  }, theirs{};
  return ::fstat(file_.get(), &ours) == 0 && ::stat(path.c_str(), &theirs) == 0 &&
         ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

Status RingReader::request_counters(std::uint64_t window, std::uint64_t most_ns) const {
  GPOEO_TRY_STATUS(write_word(kRequestOffset + offsetof(CounterRequest, most_ns), most_ns));
  return write_word(kRequestOffset + offsetof(CounterRequest, start), window);
}

Status RingReader::stop_counters(std::uint64_t window) const {
  return write_word(kRequestOffset + offsetof(CounterRequest, stop), window);
}

Result<std::optional<CounterBlock>> RingReader::counters() const {
  // Three reads: within one, nothing says what is copied first.
  CounterBlock block;
  GPOEO_TRY(const std::uint64_t before, read_word(kCountersOffset));
  if (before == 0 || before % 2 != 0) return std::optional<CounterBlock>{};
  std::atomic_thread_fence(std::memory_order_acquire);
  GPOEO_TRY_STATUS(read_exactly(file_.get(), &block, sizeof block, kCountersOffset, path_));
  std::atomic_thread_fence(std::memory_order_acquire);
  GPOEO_TRY(const std::uint64_t after, read_word(kCountersOffset));
  if (after != before) return std::optional<CounterBlock>{};
  block.sequence = before;
  if (block.count > kMostCounterValues) {
    return corrupt(fmt::format("{} counter values", block.count));
  }
  if (static_cast<std::uint32_t>(block.error) > kMostCounterError) {
    return corrupt(fmt::format("counter error {}", static_cast<std::uint32_t>(block.error)));
  }
  // In unsigned numbers: what lies in the file may be anything.
  const std::uint64_t span =
      static_cast<std::uint64_t>(block.end_ns) - static_cast<std::uint64_t>(block.begin_ns);
  if (span > kLongestCounterWindow_ns) {
    return corrupt("a counter window that ends before it begins, or lasts for hours");
  }
  if (block.covered_ns > span) return corrupt("counters of a longer time than their window");
  block.begin_ns = on_timeline(block.begin_ns);
  block.end_ns = on_timeline(block.end_ns);
  if (block.end_ns < block.begin_ns) return corrupt("a counter window at no possible time");
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < block.count; ++i) {
    if (std::isfinite(block.values[i].value)) block.values[kept++] = block.values[i];
  }
  block.count = kept;
  return std::optional(block);
}

}  // namespace gpoeo::wire
