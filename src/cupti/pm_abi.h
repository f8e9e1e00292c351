// SPDX-License-Identifier: Apache-2.0
// Memory layouts of the calls of CUPTI's PM sampling and profiler host interfaces that this module
// makes (CUDA 12.6 and newer, driver r560 and newer). Own declarations, so that nothing of CUPTI is
// needed to build; facts only: every block begins with its size and a null, and its size counts up
// to the end of its last field.
//
// Checked against CUPTI 13.0's cupti_pmsampling.h and cupti_profiler_host.h by pm_abi_check.cc,
// where that toolkit is installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpoeo::cupti::pm {

struct Head {
  std::size_t bytes;
  void* reserved = nullptr;
};

// cuptiProfilerInitialize: the head alone.

struct ChipName {  // cuptiDeviceGetChipName
  Head head;
  std::size_t device;
  const char* name;  // out
};

struct Availability {  // cuptiPmSamplingGetCounterAvailability
  Head head;
  std::size_t device;
  std::size_t image_bytes;  // in and out
  std::uint8_t* image;      // null: asks for the size
};

struct HostOpen {  // cuptiProfilerHostInitialize
  Head head;
  std::int32_t kind;  // kHostPmSampling
  const char* chip;
  const std::uint8_t* availability;
  void* host;  // out
};
inline constexpr std::int32_t kHostPmSampling = 1;

struct HostClose {  // cuptiProfilerHostDeinitialize
  Head head;
  void* host;
};

struct HostMetrics {  // cuptiProfilerHostConfigAddMetrics
  Head head;
  void* host;
  const char** names;
  std::size_t count;
};

struct HostConfigSize {  // cuptiProfilerHostGetConfigImageSize
  Head head;
  void* host;
  std::size_t image_bytes;  // out
};

struct HostConfig {  // cuptiProfilerHostGetConfigImage
  Head head;
  void* host;
  std::size_t image_bytes;
  std::uint8_t* image;
};

struct HostPasses {  // cuptiProfilerHostGetNumOfPasses
  Head head;
  std::size_t image_bytes;
  std::uint8_t* image;
  std::size_t passes;  // out
};

struct HostEvaluate {  // cuptiProfilerHostEvaluateToGpuValues
  Head head;
  void* host;
  const std::uint8_t* data;
  std::size_t data_bytes;
  std::size_t range;
  const char** names;
  std::size_t count;
  double* values;
};

struct Enable {  // cuptiPmSamplingEnable
  Head head;
  std::size_t device;
  void* sampler;  // out
};

struct OfSampler {  // cuptiPmSamplingDisable, ...Start, ...Stop
  Head head;
  void* sampler;
};

struct Config {  // cuptiPmSamplingSetConfig
  Head head;
  void* sampler;
  std::size_t image_bytes;
  const std::uint8_t* image;
  std::size_t hardware_buffer_bytes;
  std::uint64_t interval;  // nanoseconds
  std::int32_t trigger;
  std::int32_t when_full;
};
inline constexpr std::int32_t kTriggerSysClock = 0;  // the interval is in its cycles
inline constexpr std::int32_t kTriggerTime = 1;      // in nanoseconds; not on Turing and GA100
inline constexpr std::int32_t kKeepOldest = 0;

struct Decode {  // cuptiPmSamplingDecodeData
  Head head;
  void* sampler;
  std::uint8_t* data;
  std::size_t data_bytes;
  std::int32_t stop_reason;  // out
  std::uint8_t overflow;     // out
};

inline constexpr std::int32_t kStoppedFull = 1;

struct DataSize {  // cuptiPmSamplingGetCounterDataSize
  Head head;
  void* sampler;
  const char** names;
  std::size_t count;
  std::uint32_t most_samples;
  std::size_t data_bytes;  // out
};

struct DataOpen {  // cuptiPmSamplingCounterDataImageInitialize
  Head head;
  void* sampler;
  std::size_t data_bytes;
  std::uint8_t* data;
};

struct DataInfo {  // cuptiPmSamplingGetCounterDataInfo
  Head head;
  const std::uint8_t* data;
  std::size_t data_bytes;
  std::size_t samples, populated, completed;  // out
};

struct SampleInfo {  // cuptiPmSamplingCounterDataGetSampleInfo
  Head head;
  void* sampler;
  const std::uint8_t* data;
  std::size_t data_bytes;
  std::size_t sample;
  std::uint64_t start_ns, end_ns;  // out
};

// The size that goes into `head.bytes`.
inline constexpr std::size_t kConfigBytes = offsetof(Config, when_full) + sizeof(std::int32_t);
inline constexpr std::size_t kDecodeBytes = offsetof(Decode, overflow) + sizeof(std::uint8_t);

// CUptiResult, as far as they tell something.
inline constexpr int kSuccess = 0;
// Of cuptiPmSamplingDecodeData: the hardware dropped records.
inline constexpr int kInvalidMetricName = 17;
inline constexpr int kHardwareBusy = 26;
inline constexpr int kNotSupported = 27;
inline constexpr int kVirtualDevice = 33;
inline constexpr int kInsufficientPrivileges = 35;
inline constexpr int kVirtualInsufficientPrivileges = 40;
inline constexpr int kMigDevice = 43;
inline constexpr int kInvalidChipName = 46;

}  // namespace gpoeo::cupti::pm
