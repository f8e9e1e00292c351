// SPDX-License-Identifier: Apache-2.0
// The reader's side of the progress ring. What lies in the file is another process's doing and is
// treated as hostile: it is read by pread(2) (a truncated file is a short read, not a SIGBUS),
// every field is checked, and nothing in it can make the reader loop, allocate without bound or
// crash.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "wire/progress_ring.h"

namespace gpoeo::wire {

// Thread rule: one thread uses a RingReader.
class RingReader {
 public:
  // kInvalid when the file is no ring of this version, with what is wrong.
  static Result<RingReader> open(const std::filesystem::path& path);

  // Appends the records published since the last call to `out`, oldest first, their t_ns already
  // in nanoseconds since the epoch. At most one ring's worth a call. kInvalid when the ring is
  // corrupt: the caller then drops it for good.
  Status drain(std::vector<RingRecord>& out);

  // Whether `path` is still the file that was opened: a process that execs makes a new one.
  bool is_file(const std::filesystem::path& path) const;
  const RingHeader& header() const { return header_; }
  // Asks for a counter window and for its end; see progress_ring.h. kIo when the file is gone bad.
  Status request_counters(std::uint64_t window, std::uint64_t most_ns) const;
  Status stop_counters(std::uint64_t window) const;
  // The newest answer, checked: nothing yet, or one that is being written, is nullopt. Its times
  // are already in nanoseconds since the epoch; values that are no numbers were left out.
  Result<std::optional<CounterBlock>> counters() const;

  // As of the last drain().
  RingState state() const { return state_; }
  QuietReason reason() const { return reason_; }
  std::uint32_t cupti_version() const { return cupti_version_; }
  std::uint64_t dropped() const { return dropped_; }
  // Slots that a producer reserved and never filled (it was killed in between).
  std::uint64_t torn() const { return torn_; }

 private:
  RingReader(Fd file, const RingHeader& header, std::filesystem::path path)
      : file_(std::move(file)), header_(header), path_(std::move(path)) {}
  Result<std::uint64_t> read_word(std::size_t offset) const;
  Status write_word(std::size_t offset, std::uint64_t word) const;
  Status read_records(std::uint64_t first, std::uint64_t count);
  std::int64_t on_timeline(std::int64_t t_ns) const;
  std::unexpected<Error> corrupt(const std::string& why) const;
  bool published(std::uint64_t number) const;

  Fd file_;
  RingHeader header_;
  std::filesystem::path path_;
  std::uint64_t tail_ = 0;
  std::optional<std::uint64_t> stuck_at_;
  RingState state_ = RingState::kRunning;
  QuietReason reason_ = QuietReason::kNone;
  std::uint32_t cupti_version_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t torn_ = 0;
  std::vector<RingRecord> window_;  // records [window_first_, +size) as last read
  std::uint64_t window_first_ = 0;
};

}  // namespace gpoeo::wire
