// SPDX-License-Identifier: Apache-2.0
// The progress ring: how a job's process tells `gpoeo run` what it launched and when it stepped.
//
// One file per process, `<pid>.ring`, in the private folder that $GPOEO_RING_DIR names (on a
// tmpfs). The job's process creates it, maps it and appends fixed-size records; gpoeo reads it with
// pread(2), never by mapping, so that a job which truncates or scribbles over its file can at worst
// be ignored. Writers: libgpoeo_inject.so (kernel and graph launches), the step() marks of the C
// API, and the twin's job program.
//
// Layout, version 2, native byte order (both sides run on one machine):
//   [0, 64)      RingHeader, written once before the file is renamed to its name
//   [64, 128)    head: how many records were reserved since the start (producers, atomic)
//   [128, 192)   the reader's line: tail (how many records it has taken) and CounterRequest
//   [192, 256)   the producers' line: dropped (how many found no room, atomic), RingState,
//                QuietReason, and the version of the CUPTI in use (0: none)
//   [256, 1024)  CounterBlock: the newest counter window
//   [1024, ...)  `capacity` records of 32 bytes; record i lies in slot i mod capacity
// A record is published when its `sequence` equals its number plus one. A full ring drops new
// records and counts them: a producer never waits.
//
// Counters, which a twin's job program tells in the place of CUPTI (the injected library reads
// none: control/outside_counters.h). The reader opens the file O_RDWR and writes with pwrite(2):
// first CounterRequest's most_ns, then its `start` = n, one more than before: "window n, please".
// The program starts it and ends it when `stop` = n, or after most_ns; then it fills CounterBlock
// with window = n, with values or with an error. One window at a time; a request that comes while
// one runs is taken up after it. The reader gives up on its own when no answer comes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gpoeo::wire {

inline constexpr std::uint64_t kRingMagic = 0x31474E524F455047ULL;  // "GPEORNG1" on little-endian
inline constexpr std::uint32_t kRingVersion = 2;
inline constexpr char kRingDirEnv[] = "GPOEO_RING_DIR";
inline constexpr char kRingSuffix[] = ".ring";
// 65,536 records are 2 MiB: a second of the densest job seen (70,000 launches a second).
inline constexpr std::uint32_t kDefaultRingCapacity = 1U << 16;
inline constexpr std::uint32_t kMaxRingCapacity = 1U << 20;

enum class RingProducer : std::uint32_t { kInjectedLibrary = 1, kTwinJob = 2, kStepMarks = 3 };

enum class RingState : std::uint32_t {
  kRunning = 1,
  kEnded = 2,  // the process said goodbye
  kQuiet = 3,  // launches are not seen, or no longer (QuietReason says why); the job goes on
};

// Why a ring is quiet. Numbers are wire format: never reused.
enum class QuietReason : std::uint32_t {
  kNone = 0,
  kNoCupti = 1,            // no libcupti in the process, its environment or the system
  kCuptiUnknown = 2,       // its version is outside 11 to 13, or functions are missing
  kOtherSubscriber = 3,    // another CUPTI user was there first
  kSteppedAside = 4,       // another CUPTI user arrived: we left before it came in
  kSubscribeFailed = 5,    // CUPTI refused for another reason
  kNoLaunchCallbacks = 6,  // CUPTI took us in but would not tell of launches
};
inline constexpr std::uint32_t kMostQuietReason = 6;

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

// What the reader asks of the library; see "Counters" above. Each word is read on its own.
struct CounterRequest {
  std::uint64_t start = 0;    // number of the window wanted, 0 before the first
  std::uint64_t stop = 0;     // number of the window that may end now
  std::uint64_t most_ns = 0;  // the library ends a window by itself after this long
};

enum class CounterSourceId : std::uint32_t {
  kNone = 0,
  kPmSampling = 1,  // CUPTI PM sampling
};

enum class CounterError : std::uint32_t {
  kNone = 0,
  kUnsupported = 1,   // no CUPTI here can read counters of this chip
  kNoPermission = 2,  // profiling is restricted to root (NVreg_RestrictProfilingToAdminUsers)
  kBusy = 3,          // another profiler holds the counters
  kFailed = 4,        // CUPTI failed otherwise; `detail` is its CUptiResult
  kTooShort = 5,      // the window ended before a sample was taken
};
inline constexpr std::uint32_t kMostCounterError = 5;

struct CounterValue {
  std::uint32_t metric = 0;  // the library and gpoeo share the numbering
  std::uint32_t reserved = 0;
  double value = 0;
};
static_assert(sizeof(CounterValue) == 16);

inline constexpr std::size_t kMostCounterValues = 32;

// Written by the library between two increments of `sequence`: odd while it writes. A reader takes
// it when `sequence` was even and the same before and after.
struct CounterBlock {
  std::uint64_t sequence = 0;
  std::uint64_t window = 0;        // the request that it answers
  std::int64_t begin_ns = 0;       // as a record's t_ns: when counting began, setting up left out
  std::int64_t end_ns = 0;         // and when it ended
  std::uint8_t device_uuid[16]{};  // all 0: unknown
  std::uint32_t device_ordinal = 0;
  CounterSourceId source = CounterSourceId::kNone;
  CounterError error = CounterError::kNone;
  std::uint32_t detail = 0;
  std::uint32_t count = 0;       // of values
  std::uint32_t passes = 0;      // that share the window one after another
  std::uint64_t covered_ns = 0;  // time within it that the values are of; 0: all of it
  CounterValue values[kMostCounterValues];
};
static_assert(sizeof(CounterBlock) == 80 + kMostCounterValues * sizeof(CounterValue));

inline constexpr std::size_t kHeadOffset = 64;
inline constexpr std::size_t kTailOffset = 128;
inline constexpr std::size_t kRequestOffset = 136;
inline constexpr std::size_t kDroppedOffset = 192;
inline constexpr std::size_t kStateOffset = 200;
inline constexpr std::size_t kReasonOffset = 204;
inline constexpr std::size_t kCuptiVersionOffset = 208;
inline constexpr std::size_t kCountersOffset = 256;
inline constexpr std::size_t kRecordsOffset = 1024;
static_assert(kRequestOffset + sizeof(CounterRequest) <= kDroppedOffset);
static_assert(kCountersOffset + sizeof(CounterBlock) <= kRecordsOffset);

constexpr std::size_t ring_file_bytes(std::uint32_t capacity) {
  return kRecordsOffset + std::size_t{capacity} * sizeof(RingRecord);
}

}  // namespace gpoeo::wire
