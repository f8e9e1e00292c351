// SPDX-License-Identifier: Apache-2.0
// Inside segment: what lies in the file, and mapping it. Only segment*.cc include this.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <filesystem>

#include "base/file.h"
#include "base/result.h"
#include "twin/card.h"

namespace gpoeo::twin {

inline constexpr std::uint64_t kSegmentMagic = 0x314E495754504F47ULL;  // "GOPTWIN1"
// Raised with every change of anything below or inside.
inline constexpr std::uint32_t kSegmentVersion = 3;

struct SegmentHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t card_count;
  std::uint64_t header_bytes, card_bytes, file_bytes;
  std::int64_t creator_pid;
  std::array<char, 64> name;  // the UUIDs come from it
  // Twin time = start + (CLOCK_MONOTONIC - anchor) * speed, or start + manual.
  std::int64_t start_ns, anchor_ns;
  double speed;
  std::int32_t manual_time;
  std::int32_t reserved;
  std::atomic<std::int64_t> manual_ns;
};

struct SegmentCard {
  pthread_mutex_t mutex;  // PROCESS_SHARED, ROBUST
  // Which of the two states holds. A change is made in the other one and this is flipped.
  std::atomic<std::uint32_t> current;
  std::int64_t liveness_checked_ns;  // CLOCK_MONOTONIC
  DeviceModel device;
  CardState states[2];
  // A slot's job is written while no state speaks of it.
  Work works[kMaxJobs];
  IterationLog logs[kMaxJobs];
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free &&
              std::atomic<std::uint32_t>::is_always_lock_free);

// A mapped segment; holds a shared flock on the file so that `remove` sees who uses it. The kernel
// drops both when the process dies.
class SegmentFile {
 public:
  // A new file of `cards` cards, all zero, not yet visible; publish() gives it its name.
  static Result<SegmentFile> create(const std::filesystem::path& path, unsigned cards);
  // kBusy when the name is taken.
  Status publish();
  // Opens, checks, maps.
  static Result<SegmentFile> open(const std::filesystem::path& path);

  SegmentFile(SegmentFile&& other) noexcept;
  SegmentFile& operator=(SegmentFile&&) = delete;
  ~SegmentFile();

  SegmentHeader& header() const { return *static_cast<SegmentHeader*>(base_); }
  SegmentCard& card(unsigned index) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  SegmentFile(Fd file, void* base, std::size_t bytes, std::filesystem::path path)
      : file_(std::move(file)), base_(base), bytes_(bytes), path_(std::move(path)) {}

  Fd file_;
  void* base_ = nullptr;
  std::size_t bytes_ = 0;
  std::filesystem::path path_;
};

// Whether another open file of this path holds it in use.
Result<bool> segment_in_use(const std::filesystem::path& path);

std::size_t segment_header_bytes();
std::size_t segment_card_bytes();

// Locks a card's mutex; a holder that died left the last whole state, so the lock is just taken on.
Status lock_card(SegmentCard& card);
void unlock_card(SegmentCard& card);
Status initialize_mutex(SegmentCard& card);

// /proc/PID/stat field 22; 0 when there is no such process or it is a zombie.
std::uint64_t process_start(std::int64_t pid);

}  // namespace gpoeo::twin
