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
#include <optional>

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
constexpr int kExitNaps = 2000;
// A profiler that comes finds the counters free. A window closes within one decoding step (20 ms)
// and what CUPTI takes; should CUPTI hang, the newcomer goes on all the same.
constexpr int kStepAsideNaps = 200;
constexpr long kNapNs = 1'000'000;

struct Windows {
  char folder[512] = {};
  std::atomic<bool> running{false};
  std::atomic<bool> stop{false};
  std::atomic<bool> exit_hooked{false};
  // Of the window that runs.
  wire::RingMapping ring;
  void* cupti = nullptr;
  std::optional<std::uint32_t> device;
  std::uint64_t window = 0;
};
constinit Windows g_windows;

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
    if (answer->passes == 0) answer->begin_ns = result.begin_ns;
    answer->end_ns = result.end_ns;
    answer->covered_ns += result.covered_ns;
    ++answer->passes;
    for (std::size_t m = 0; m < pass.count && answer->count < wire::kMostCounterValues; ++m) {
      if (!result.values[m]) continue;
      const bool percent = strstr(pass.metrics[m], ".pct") != nullptr;
      answer->values[answer->count].metric = pass.words[m];
      answer->values[answer->count].value = *result.values[m] * (percent ? 0.01 : 1.0);
      ++answer->count;
    }
  }
  if (answer->count == 0) answer->error = wire::CounterError::kTooShort;
}

// CUDA's number of the device of `context`. It must be asked in the launch's own callback (CUPTI
// allows it there): afterwards the job may have destroyed the context.
std::optional<std::uint32_t> device_of(void* library, void* context) {
  using GetDeviceId = int (*)(void*, std::uint32_t*);
  const auto get_device = reinterpret_cast<GetDeviceId>(dlsym(library, "cuptiGetDeviceId"));
  std::uint32_t device = 0;
  if (get_device == nullptr || get_device(context, &device) != cupti::kSuccess) return {};
  return device;
}

void fill(wire::CounterBlock* answer) {
  if (!g_windows.device) {  // of another card than the job's they would mislead
    answer->error = wire::CounterError::kUnsupported;
    return;
  }
  const std::uint32_t device = *g_windows.device;
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
  fill(&answer);
  g_windows.ring.publish_counters(answer);
  g_windows.running.store(false);
  return nullptr;
}

// No window runs from here on, or the one that runs has been waited for in vain.
void end_windows(int naps) {
  g_windows.stop.store(true);
  const timespec nap{0, kNapNs};
  for (int i = 0; i < naps && g_windows.running.load(); ++i) nanosleep(&nap, nullptr);
}

// Registered after CUDA's own, so that it runs before them.
void at_exit() { end_windows(kExitNaps); }

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
  g_windows.running.store(false);
}

void prepare_counter_windows(const char* folder) {
  snprintf(g_windows.folder, sizeof g_windows.folder, "%s", folder);
}

bool take_up_counter_window(const wire::RingMapping& ring, const CuptiLibrary& cupti, void* context,
                            std::uint64_t window) {
  if (g_windows.running.exchange(true)) return false;
  // Either this sees the end that end_windows() asks for, or that sees this window run.
  if (g_windows.stop.load()) {
    g_windows.running.store(false);
    return true;
  }
  g_windows.ring = ring;
  g_windows.cupti = cupti.handle;
  g_windows.device = device_of(cupti.handle, context);
  g_windows.window = window;
  if (!g_windows.exit_hooked.exchange(true)) atexit(&at_exit);
  if (!start_thread()) {
    wire::CounterBlock answer;
    answer.window = window;
    answer.error = wire::CounterError::kFailed;
    ring.publish_counters(answer);
    g_windows.running.store(false);
  }
  return true;
}

void end_counter_windows() { end_windows(kStepAsideNaps); }

}  // namespace gpoeo::inject
