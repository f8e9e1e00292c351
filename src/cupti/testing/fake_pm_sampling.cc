// SPDX-License-Identifier: Apache-2.0
// A CUPTI of counters alone: a sample of 2 ms each 2 ms while a sampler runs, of a chip "GH100".
// A metric's value is 50, but for names that begin with "never", which have none.
#include <time.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "cupti/pm_abi.h"

namespace {

namespace pm = gpoeo::cupti::pm;

// What a counter data image holds here.
struct Image {
  std::uint64_t first_ns;
  std::uint64_t samples;
  bool after_start;
};

std::atomic<int> g_open{0};                // samplers and host objects that were not given back
std::atomic<std::uint64_t> g_taken_ns{0};  // samples were decoded up to here
std::uint64_t g_interval_ns = 2'000'000;
bool g_just_started = false;

std::uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

template <typename Block>
Block* as(void* block) {
  return static_cast<Block*>(block);
}

}  // namespace

extern "C" {

int cuptiProfilerInitialize(void*) { return pm::kSuccess; }
int cuptiDeviceGetChipName(void* block) {
  as<pm::ChipName>(block)->name = "GH100";
  return pm::kSuccess;
}
int cuptiPmSamplingGetCounterAvailability(void* block) {
  as<pm::Availability>(block)->image_bytes = 8;
  return pm::kSuccess;
}
int cuptiProfilerHostInitialize(void* block) {
  as<pm::HostOpen>(block)->host = &g_open;
  ++g_open;
  return pm::kSuccess;
}
int cuptiProfilerHostDeinitialize(void*) {
  --g_open;
  return pm::kSuccess;
}
int cuptiProfilerHostConfigAddMetrics(void*) { return pm::kSuccess; }
int cuptiProfilerHostGetConfigImageSize(void* block) {
  as<pm::HostConfigSize>(block)->image_bytes = 8;
  return pm::kSuccess;
}
int cuptiProfilerHostGetConfigImage(void*) { return pm::kSuccess; }
int cuptiProfilerHostGetNumOfPasses(void* block) {
  as<pm::HostPasses>(block)->passes = 1;
  return pm::kSuccess;
}
int cuptiPmSamplingEnable(void* block) {
  if (const char* refusal = std::getenv("FAKE_PM_REFUSES")) return std::atoi(refusal);
  as<pm::Enable>(block)->sampler = &g_open;
  ++g_open;
  return pm::kSuccess;
}
int cuptiPmSamplingDisable(void*) {
  --g_open;
  return pm::kSuccess;
}
int cuptiPmSamplingSetConfig(void* block) {
  const auto* config = as<pm::Config>(block);
  // As on Turing and GA100: the timer is refused.
  const char* no_timer = std::getenv("FAKE_PM_NO_TIMER");
  if (no_timer != nullptr && config->trigger == pm::kTriggerTime) return 1;
  g_interval_ns = config->interval;
  return pm::kSuccess;
}
int cuptiPmSamplingGetCounterDataSize(void* block) {
  as<pm::DataSize>(block)->data_bytes = sizeof(Image);
  return pm::kSuccess;
}
int cuptiPmSamplingCounterDataImageInitialize(void* block) {
  std::memset(as<pm::DataOpen>(block)->data, 0, sizeof(Image));
  return pm::kSuccess;
}
int cuptiPmSamplingStart(void*) {
  g_taken_ns = now_ns();
  g_just_started = true;
  return pm::kSuccess;
}
#ifndef FAKE_LACKS_COUNTERS  // as before CUDA 12.6
int cuptiPmSamplingStop(void*) { return pm::kSuccess; }
#endif
int cuptiPmSamplingDecodeData(void* block) {
  auto* decode = as<pm::Decode>(block);
  auto* image = reinterpret_cast<Image*>(decode->data);
  image->first_ns = g_taken_ns;
  image->samples = (now_ns() - g_taken_ns) / g_interval_ns;
  image->after_start = std::exchange(g_just_started, false);
  decode->overflow = std::getenv("FAKE_PM_OVERFLOWS") != nullptr ? 1 : 0;
  g_taken_ns += image->samples * g_interval_ns;
  decode->stop_reason = pm::kStoppedFull + 1;
  return pm::kSuccess;
}
int cuptiPmSamplingGetCounterDataInfo(void* block) {
  auto* info = as<pm::DataInfo>(block);
  info->completed = reinterpret_cast<const Image*>(info->data)->samples;
  return pm::kSuccess;
}
int cuptiPmSamplingCounterDataGetSampleInfo(void* block) {
  auto* sample = as<pm::SampleInfo>(block);
  const auto* image = reinterpret_cast<const Image*>(sample->data);
  sample->start_ns = image->first_ns + sample->sample * g_interval_ns;
  sample->end_ns = sample->start_ns + g_interval_ns;
  // As seen on an H200: the first sample is of all that was counted before the start, too.
  if (image->after_start && sample->sample == 0) sample->start_ns -= 1'000'000'000;
  return pm::kSuccess;
}
int cuptiProfilerHostEvaluateToGpuValues(void* block) {
  auto* evaluate = as<pm::HostEvaluate>(block);
  for (std::size_t i = 0; i < evaluate->count; ++i) {
    const auto* image = reinterpret_cast<const Image*>(evaluate->data);
    const bool old = image->after_start && evaluate->range == 0;
    evaluate->values[i] = std::strncmp(evaluate->names[i], "never", 5) == 0 ? NAN : old ? 100 : 50;
  }
  return pm::kSuccess;
}
}
