// SPDX-License-Identifier: Apache-2.0
#include "inject/counter_window.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "inject/metric_list.h"
#include "inject/pm_sampling.h"
#include "inject/say.h"

namespace gpoeo::inject {
namespace {

constexpr std::size_t kMostListBytes = std::size_t{1} << 18;
// Sampled in so small steps, the samples' own traffic on PCIe stays far below the job's.
constexpr std::uint64_t kIntervalNs = 2'000'000;
constexpr std::uint64_t kShortestPassNs = 500'000'000;
// At the process's end the driver must not be taken away under the thread.
constexpr int kExitNaps = 200;
constexpr long kExitNapNs = 10'000'000;

struct Windows {
  char folder[512] = {};
  std::atomic<bool> running{false};
  std::atomic<bool> stop{false};
  std::atomic<bool> exit_hooked{false};
  // Of the window that runs.
  wire::RingMapping ring;
  void* cupti = nullptr;
  void* context = nullptr;
  std::uint64_t window = 0;
};
constinit Windows g_windows;

std::int64_t monotonic_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

// The list as text with a NUL at its end, to be freed; nullptr when there is none.
char* read_list() {
  char path[sizeof g_windows.folder + 32];
  snprintf(path, sizeof path, "%s/%s", g_windows.folder, wire::kCounterMetricsFile);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return nullptr;
  char* text = static_cast<char*>(malloc(kMostListBytes + 1));
  std::size_t size = 0;
  while (text != nullptr && size < kMostListBytes) {
    const ssize_t n = read(file, text + size, kMostListBytes - size);
    if (n <= 0) break;
    size += static_cast<std::size_t>(n);
  }
  close(file);
  if (text != nullptr) text[size] = '\0';
  return text;
}

wire::CounterError wire_error(PmError error) {
  switch (error) {
    case PmError::kNone:
      return wire::CounterError::kNone;
    case PmError::kNoCupti:
    case PmError::kNotThisGpu:
      return wire::CounterError::kUnsupported;
    case PmError::kNoPrivilege:
      return wire::CounterError::kNoPermission;
    case PmError::kBusy:
      return wire::CounterError::kBusy;
    case PmError::kNoSamples:
      return wire::CounterError::kTooShort;
    case PmError::kUnknownMetric:
    case PmError::kTooManyMetrics:
    case PmError::kOverflow:
    case PmError::kOther:
      break;
  }
  return wire::CounterError::kFailed;
}

bool should_stop(const void*) {
  return g_windows.stop.load(std::memory_order_relaxed) ||
         g_windows.ring.stopped_window() >= g_windows.window;
}

// Passes share the time, each a whole number of iterations where that is known and short enough.
std::uint64_t pass_length_ns(std::uint64_t most_ns, const MetricList& list) {
  const std::uint64_t share = most_ns / list.count;
  const std::uint64_t wanted = share < kShortestPassNs ? kShortestPassNs : share;
  if (list.iteration_ns == 0 || list.iteration_ns > wanted) return wanted;
  return wanted / list.iteration_ns * list.iteration_ns;
}

// Passes that fail leave their words out; the first pass decides whether there are any counters.
void sample_passes(std::size_t device, const MetricList& list, wire::CounterBlock* answer) {
  PmRequest request;
  request.device = device;
  request.interval_ns = kIntervalNs;
  request.window_ns = pass_length_ns(g_windows.ring.most_window_ns(), list);
  request.should_stop = &should_stop;
  for (std::size_t i = 0; i < list.count && !should_stop(nullptr); ++i) {
    const MetricPass& pass = list.passes[i];
    request.metrics = pass.metrics;
    request.count = pass.count;
    const PmResult result = pm_sample(g_windows.cupti, request);
    say("counter pass %zu: error %u, CUPTI %d %s, %u samples over %.3f s", i,
        static_cast<unsigned>(result.error), result.cupti, result.call, result.samples,
        static_cast<double>(result.covered_ns) * 1e-9);
    if (result.error != PmError::kNone) {
      if (i > 0) continue;
      answer->error = wire_error(result.error);
      answer->detail = static_cast<std::uint32_t>(result.cupti);
      return;
    }
    ++answer->passes;
    for (std::size_t m = 0; m < pass.count && answer->count < wire::kMostCounterValues; ++m) {
      const bool percent = strstr(pass.metrics[m], ".pct") != nullptr;
      answer->values[answer->count].metric = pass.words[m];
      answer->values[answer->count].value = result.values[m] * (percent ? 0.01 : 1.0);
      ++answer->count;
    }
  }
  if (answer->count == 0) answer->error = wire::CounterError::kTooShort;
}

void fill(wire::CounterBlock* answer) {
  using GetDeviceId = int (*)(void*, std::uint32_t*);
  const auto get_device = reinterpret_cast<GetDeviceId>(dlsym(g_windows.cupti, "cuptiGetDeviceId"));
  std::uint32_t device = 0;
  if (get_device == nullptr || get_device(g_windows.context, &device) != 0) device = 0;
  answer->device_ordinal = device;
  answer->source = wire::CounterSourceId::kPmSampling;
  char chip[32] = {};
  if (!pm_chip_name(g_windows.cupti, device, chip, sizeof chip)) {
    answer->error = wire::CounterError::kUnsupported;
    return;
  }
  char* text = read_list();
  const MetricList list = text == nullptr ? MetricList{} : parse_metrics(text, chip);
  say("counter window %llu: device %u, chip %s, %zu passes",
      static_cast<unsigned long long>(g_windows.window), device, chip, list.count);
  if (list.count == 0) {
    answer->error = wire::CounterError::kUnsupported;
  } else {
    sample_passes(device, list, answer);
  }
  free(text);
}

void* run_window(void*) {
  wire::CounterBlock answer;
  answer.window = g_windows.window;
  answer.begin_ns = monotonic_ns();
  fill(&answer);
  answer.end_ns = monotonic_ns();
  g_windows.ring.publish_counters(answer);
  g_windows.running.store(false, std::memory_order_release);
  return nullptr;
}

// Registered after CUDA's own, so that it runs before them.
void at_exit() {
  g_windows.stop.store(true);
  const timespec nap{0, kExitNapNs};
  for (int i = 0; i < kExitNaps && g_windows.running.load(std::memory_order_acquire); ++i) {
    nanosleep(&nap, nullptr);
  }
}

bool start_thread() {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  // The job's signals are the job's business.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, &run_window, nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return error == 0;
}

}  // namespace

void forget_counter_window() {
  g_windows.stop.store(true);
  g_windows.running.store(false, std::memory_order_release);
}

void prepare_counter_windows(const char* folder) {
  snprintf(g_windows.folder, sizeof g_windows.folder, "%s", folder);
}

bool take_up_counter_window(const wire::RingMapping& ring, const CuptiLibrary& cupti, void* context,
                            std::uint64_t window) {
  if (g_windows.running.exchange(true, std::memory_order_acquire)) return false;
  g_windows.ring = ring;
  g_windows.cupti = cupti.handle;
  g_windows.context = context;
  g_windows.window = window;
  if (!g_windows.exit_hooked.exchange(true)) atexit(&at_exit);
  if (!start_thread()) {
    wire::CounterBlock answer;
    answer.window = window;
    answer.error = wire::CounterError::kFailed;
    ring.publish_counters(answer);
    g_windows.running.store(false, std::memory_order_release);
  }
  return true;
}

void stop_counter_window() { g_windows.stop.store(true); }

}  // namespace gpoeo::inject
