// SPDX-License-Identifier: Apache-2.0
#include "sampling.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/activity.h"
#include "base/file.h"
#include "cupti/metric_list.h"
#include "cupti/pm_sampling.h"
#include "loaded_library.h"

namespace gpoeo::counters {
namespace {

using cupti::MetricList;
using cupti::MetricPass;
using cupti::PmError;
using cupti::PmRequest;
using cupti::PmResult;

// In steps of 2 ms the samples' own traffic on PCIe stays far below a job's (10 MB/s; 200 MB/s at
// 0.1 ms: docs/hardware.md).
constexpr std::uint64_t kIntervalNs = 2'000'000;
constexpr double kShortestPass_s = 0.5;
constexpr double kBillion = 1e9;
constexpr double kRounding = 1e-3;  // of an iteration
// CUPTI has PM sampling since CUDA 12.6; with the toolkit's own name last.
constexpr const char* kUsualCupti[] = {"libcupti.so.13", "libcupti.so.12",
                                       "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
                                       "/usr/local/cuda/lib64/libcupti.so"};

bool input_is_closed(const void*) {
  pollfd closed{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  return ::poll(&closed, 1, 0) > 0 && (closed.revents & (POLLHUP | POLLERR)) != 0;
}

std::int64_t unix_offset_ns() {
  timespec wall{}, steady{};
  ::clock_gettime(CLOCK_REALTIME, &wall);
  ::clock_gettime(CLOCK_MONOTONIC, &steady);
  return (wall.tv_sec - steady.tv_sec) * 1'000'000'000LL + wall.tv_nsec - steady.tv_nsec;
}

// Empty when the driver is up.
std::string start_driver(const std::string& gpu) {
  // The one card is then CUDA's device 0; and whatever is meant for the job stays out of here.
  ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
  ::setenv("CUDA_VISIBLE_DEVICES", gpu.c_str(), 1);
  ::unsetenv("CUDA_INJECTION64_PATH");
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (driver == nullptr) return fmt::format("no CUDA driver: {}", ::dlerror());
  const auto init = reinterpret_cast<int (*)(unsigned)>(::dlsym(driver, "cuInit"));
  const int result = init == nullptr ? -1 : init(0);
  return result == 0 ? "" : fmt::format("cuInit failed with {} for GPU {}", result, gpu);
}

// A libcupti that has PM sampling and knows the card; nullptr: none.
void* open_cupti(const Request& request, Answer* answer) {
  std::vector<std::string> candidates = request.cupti;
  if (request.job > 0) {
    const std::string own = loaded_library(request.job, "libcupti");
    if (!own.empty()) candidates.push_back(own);
  }
  candidates.insert(candidates.end(), std::begin(kUsualCupti), std::end(kUsualCupti));
  for (const std::string& candidate : candidates) {
    void* library = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    char chip[32] = {};
    if (!cupti::has_pm_sampling(library)) {
      ::dlclose(library);
    } else if (!cupti::pm_chip_name(library, 0, chip, sizeof chip)) {
      answer->error = fmt::format("{} does not know GPU {}", candidate, request.gpu);
    } else {
      answer->cupti_path = candidate;
      answer->chip = chip;
      answer->error.clear();
      return library;
    }
  }
  if (answer->error.empty()) {
    answer->error =
        "no libcupti of CUDA 12.6 or newer, which have PM sampling; cure: pip install "
        "nvidia-cuda-cupti, or put one on LD_LIBRARY_PATH";
  }
  return nullptr;
}

std::string explain(const PmResult& result, const std::string& chip) {
  switch (result.error) {
    case PmError::kNoPrivilege:
      return "the driver keeps counters to administrators; cure: options nvidia "
             "NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d, then reload the driver";
    case PmError::kBusy:
      return "another profiler holds the counters";
    case PmError::kNotThisGpu:
      return fmt::format("PM sampling is not on this GPU ({})", chip);
    case PmError::kNoSamples:
      return "the window ended before a sample was taken";
    case PmError::kUnknownMetric:
      return fmt::format("CUPTI does not know a metric listed for {}", chip);
    case PmError::kNone:
    case PmError::kNoCupti:
    case PmError::kTooManyMetrics:
    case PmError::kOverflow:
    case PmError::kOther:
      break;
  }
  return fmt::format("{} failed with {}", result.call, result.cupti);
}

// Passes share the time, each a whole number of iterations; of iterations that are longer than two
// passes, a part.
double pass_length_s(const Request& request, std::size_t passes) {
  const double share = request.seconds / static_cast<double>(std::max<std::size_t>(passes, 1));
  const double wanted = std::max(kShortestPass_s, share);
  if (request.iteration_s <= 0) return wanted;
  const double whole = std::ceil(wanted / request.iteration_s - kRounding) * request.iteration_s;
  return whole > 2 * wanted ? wanted : whole;
}

void take(const MetricPass& pass, const PmResult& result, Answer* answer) {
  const std::int64_t offset = unix_offset_ns();
  if (answer->passes == 0) answer->begin_unix_ns = result.begin_ns + offset;
  answer->end_unix_ns = result.end_ns + offset;
  answer->covered_s += static_cast<double>(result.covered_ns) / kBillion;
  ++answer->passes;
  for (std::size_t m = 0; m < pass.count; ++m) {
    const ActivityWord* word = find_activity(pass.words[m]);
    if (!result.values[m] || word == nullptr) continue;
    const bool percent = std::string_view(pass.metrics[m]).contains(".pct");
    answer->values.emplace_back(word->name, *result.values[m] * (percent ? 0.01 : 1.0));
  }
}

// Everything that a reading needs but the reading.
void check(void* cupti, const MetricList& list, Answer* answer) {
  PmRequest ask;
  ask.interval_ns = kIntervalNs;
  ask.metrics = list.passes[0].metrics;
  ask.count = list.passes[0].count;
  ask.dry = true;
  const PmResult result = cupti::pm_sample(cupti, ask);
  if (result.error != PmError::kNone) {
    answer->error = explain(result, answer->chip);
  } else {
    answer->passes = list.count;
  }
}

// Passes that fail leave their words out; the first decides whether there are any counters.
void sample(void* cupti, const Request& request, const MetricList& list, Answer* answer) {
  PmRequest ask;
  ask.interval_ns = kIntervalNs;
  ask.window_ns = static_cast<std::uint64_t>(pass_length_s(request, list.count) * kBillion);
  ask.by_cycles = request.by_cycles;
  if (request.until_input_closes) ask.should_stop = &input_is_closed;
  for (std::size_t i = 0;
       i < list.count && !(request.until_input_closes && input_is_closed(nullptr)); ++i) {
    const MetricPass& pass = list.passes[i];
    ask.metrics = pass.metrics;
    ask.count = pass.count;
    const PmResult result = cupti::pm_sample(cupti, ask);
    if (result.error == PmError::kNone) {
      take(pass, result, answer);
    } else if (i == 0) {
      answer->error = explain(result, answer->chip);
      return;
    }
  }
  if (answer->values.empty()) answer->error = "the window ended before a sample was taken";
}

}  // namespace

Answer read_counters(const Request& request) {
  Answer answer;
  if (answer.error = start_driver(request.gpu); !answer.error.empty()) return answer;
  void* cupti = open_cupti(request, &answer);
  if (cupti == nullptr) return answer;
  auto text = read_file(request.metrics_file, std::size_t{1} << 20);
  if (!text) {
    answer.error = text.error().text;
    return answer;
  }
  const MetricList list = cupti::parse_metrics(text->data(), answer.chip.c_str());
  if (list.count == 0) {
    answer.error = fmt::format("{} lists no metrics for {}", request.metrics_file, answer.chip);
  } else if (request.check_only) {
    check(cupti, list, &answer);
  } else {
    sample(cupti, request, list, &answer);
  }
  return answer;
}

}  // namespace gpoeo::counters
