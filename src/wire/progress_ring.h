// SPDX-License-Identifier: Apache-2.0
// The progress ring: how a job's process tells `gpoeo run` what it launched and when it stepped.
//
// One file per process, `<pid>.ring`, in the private folder that $GPOEO_RING_DIR names (on a
// tmpfs). The job's process creates it, maps it and appends fixed-size records; gpoeo reads it with
// pread(2), never by mapping, so that a job which truncates or scribbles over its file can at worst
// be ignored. Writers: libgpoeo_inject.so (kernel and graph launches), the step() marks of the C
// API, and the twin's job program.
//
// Layout, version 1, native byte order (both sides run on one machine):
//   [0, 64)     RingHeader, written once before the file is renamed to its name
//   [64, 128)   head: how many records were reserved since the start (producers, atomic)
//   [128, 192)  tail: how many the reader has taken (reader)
//   [192, 256)  dropped: how many found no room (producers, atomic); state (see RingState)
//   [256, ...)  `capacity` records of 32 bytes; record i lies in slot i mod capacity
// A record is published when its `sequence` equals its number plus one. A full ring drops new
// records and counts them: a producer never waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gpoeo::wire {

inline constexpr std::uint64_t kRingMagic = 0x31474E524F455047ULL;  // "GPEORNG1" on little-endian
inline constexpr std::uint32_t kRingVersion = 1;
inline constexpr char kRingDirEnv[] = "GPOEO_RING_DIR";
inline constexpr char kRingSuffix[] = ".ring";
// 65,536 records are 2 MiB: a second of the densest job seen (70,000 launches a second).
inline constexpr std::uint32_t kDefaultRingCapacity = 1U << 16;
inline constexpr std::uint32_t kMaxRingCapacity = 1U << 20;

enum class RingProducer : std::uint32_t { kInjectedLibrary = 1, kTwinJob = 2, kStepMarks = 3 };

enum class RingState : std::uint32_t {
  kRunning = 1,
  kEnded = 2,  // the process said goodbye
  kQuiet = 3,  // another CUPTI user came: launches are no longer seen, the job goes on
};

enum class RecordKind : std::uint32_t {
  kKernelLaunch = 1,
  kGraphLaunch = 2,
  kStep = 3,        // one training iteration ended (step() or a twin job's own mark)
  kBeginSteps = 4,  // the C API's begin
  kEndSteps = 5,    // and end: what follows is not training
};

struct RingHeader {
  std::uint64_t magic = kRingMagic;
  std::uint32_t version = kRingVersion;
  std::uint32_t record_bytes = 32;
  std::uint32_t capacity = 0;  // records, a power of two
  RingProducer producer = RingProducer::kInjectedLibrary;
  std::int64_t pid = 0;
  std::int64_t unix_offset_ns = 0;  // add to a record's t_ns to get nanoseconds since the epoch
  std::uint8_t reserved[24] = {};
};
static_assert(sizeof(RingHeader) == 64);

struct RingRecord {
  std::uint64_t sequence = 0;
  std::int64_t t_ns = 0;
  std::uint64_t function_id = 0;  // one number per kernel handle and grid; 0 for marks
  RecordKind kind = RecordKind::kKernelLaunch;
  std::uint32_t stream = 0;  // small number per stream in order of first use
};
static_assert(sizeof(RingRecord) == 32);

inline constexpr std::size_t kHeadOffset = 64;
inline constexpr std::size_t kTailOffset = 128;
inline constexpr std::size_t kDroppedOffset = 192;
inline constexpr std::size_t kStateOffset = 200;
inline constexpr std::size_t kRecordsOffset = 256;

constexpr std::size_t ring_file_bytes(std::uint32_t capacity) {
  return kRecordsOffset + std::size_t{capacity} * sizeof(RingRecord);
}

}  // namespace gpoeo::wire
