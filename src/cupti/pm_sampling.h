// SPDX-License-Identifier: Apache-2.0
// Hardware counters of a whole card: one bounded window of CUPTI PM sampling. The card samples its
// counters by a timer, or by cycles where it has none, while kernels run as they always do: no
// replay, no serialisation. Everything is taken and released inside one call, but CUPTI's profiler
// interface: it is the process's, and stays initialised. Never in a job's process: a job that ends
// meanwhile dies of it (docs/hardware.md, "What hurt").
//
// Thread rule: one thread, one window at a time. No exceptions; memory is bounded by kMostPmSamples
// and the hardware buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace gpoeo::cupti {

inline constexpr std::size_t kMostPmMetrics = 24;
// Decoded at one time; the rest waits in the hardware buffer.
inline constexpr std::uint32_t kMostPmSamples = 1024;

// Why a window has no values.
enum class PmError : std::uint32_t {
  kNone = 0,
  kNoCupti = 1,         // no libcupti, or one older than 12.6 (no PM sampling in it)
  kNoPrivilege = 2,     // the driver keeps counters to administrators
  kNotThisGpu = 3,      // Volta and older, MIG, a virtual GPU
  kBusy = 4,            // another profiler holds the counters
  kUnknownMetric = 5,   // a name this chip does not have
  kTooManyMetrics = 6,  // they do not fit one hardware pass
  kNoSamples = 7,
  kOverflow = 8,  // samples were lost: the window would not be whole
  kOther = 9,
};

struct PmRequest {
  std::size_t device = 0;                // CUDA's number
  const char* const* metrics = nullptr;  // at most kMostPmMetrics
  std::size_t count = 0;
  std::uint64_t window_ns = 0;
  std::uint64_t interval_ns = 0;  // by cycles: about that
  bool by_cycles = false;         // as on cards without a timer; for trials
  std::uint64_t decode_each_ns = 20'000'000;
  std::size_t hardware_buffer_bytes = std::size_t{32} << 20;
  bool dry = false;                            // all but the sampling: could it be done?
  bool (*should_stop)(const void*) = nullptr;  // ends the window early
};

struct PmResult {
  PmError error = PmError::kOther;
  int cupti = 0;          // CUPTI's own number, 0 when it refused nothing
  const char* call = "";  // that failed
  std::uint32_t samples = 0;
  std::int64_t begin_ns = 0, end_ns = 0;  // CLOCK_MONOTONIC: from the start to the stop of sampling
  std::uint64_t covered_ns = 0;           // time that the samples cover, within those
  // Means over the samples, in the metric's own unit; none where no sample had a value (a ratio
  // of two things that never happened).
  std::optional<double> values[kMostPmMetrics] = {};
};

// In all of them `cupti` is a handle of dlopen(3) for libcupti.so.
//
// Whether it has all the functions of PM sampling.
bool has_pm_sampling(void* cupti);

// The chip's name as in the list of metrics, "GH100"; false when CUPTI cannot tell.
bool pm_chip_name(void* cupti, std::size_t device, char* name, std::size_t size);

PmResult pm_sample(void* cupti, const PmRequest& request);

}  // namespace gpoeo::cupti
