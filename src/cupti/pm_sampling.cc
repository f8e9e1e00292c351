// SPDX-License-Identifier: Apache-2.0
#include "cupti/pm_sampling.h"

#include <dlfcn.h>
#include <time.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "cupti/pm_abi.h"

namespace gpoeo::cupti {
namespace {

using Call = int (*)(void*);

constexpr std::uint64_t kShortestIntervalNs = 10'000;
constexpr std::uint64_t kBillion = 1'000'000'000;
// The first sample after a start also holds what was counted before it (seen on an H200: seconds).
constexpr std::uint64_t kLongestSampleIntervals = 3;
// A cycle for a nanosecond, of a clock that may be at 0.3 GHz: with as much room.
constexpr std::uint64_t kLongestSampleByCycles = 10;

struct Cupti {
  Call initialize, chip_name, availability, host_open, host_close, host_metrics, host_config_size,
      host_config, host_passes, host_evaluate, enable, disable, start, stop, configure, decode,
      data_size, data_open, data_info, sample_info;

  bool load(void* library) {
    const struct {
      Call* to;
      const char* name;
    } symbols[] = {
        {&initialize, "cuptiProfilerInitialize"},
        {&chip_name, "cuptiDeviceGetChipName"},
        {&availability, "cuptiPmSamplingGetCounterAvailability"},
        {&host_open, "cuptiProfilerHostInitialize"},
        {&host_close, "cuptiProfilerHostDeinitialize"},
        {&host_metrics, "cuptiProfilerHostConfigAddMetrics"},
        {&host_config_size, "cuptiProfilerHostGetConfigImageSize"},
        {&host_config, "cuptiProfilerHostGetConfigImage"},
        {&host_passes, "cuptiProfilerHostGetNumOfPasses"},
        {&host_evaluate, "cuptiProfilerHostEvaluateToGpuValues"},
        {&enable, "cuptiPmSamplingEnable"},
        {&disable, "cuptiPmSamplingDisable"},
        {&start, "cuptiPmSamplingStart"},
        {&stop, "cuptiPmSamplingStop"},
        {&configure, "cuptiPmSamplingSetConfig"},
        {&decode, "cuptiPmSamplingDecodeData"},
        {&data_size, "cuptiPmSamplingGetCounterDataSize"},
        {&data_open, "cuptiPmSamplingCounterDataImageInitialize"},
        {&data_info, "cuptiPmSamplingGetCounterDataInfo"},
        {&sample_info, "cuptiPmSamplingCounterDataGetSampleInfo"},
    };
    for (const auto& symbol : symbols) {
      *symbol.to = reinterpret_cast<Call>(::dlsym(library, symbol.name));
      if (*symbol.to == nullptr) return false;
    }
    return true;
  }
};

PmError meaning(int cupti) {
  switch (cupti) {
    case pm::kInvalidMetricName:
      return PmError::kUnknownMetric;
    case pm::kHardwareBusy:
      return PmError::kBusy;
    case pm::kInsufficientPrivileges:
    case pm::kVirtualInsufficientPrivileges:
      return PmError::kNoPrivilege;
    case pm::kNotSupported:
    case pm::kVirtualDevice:
    case pm::kMigDevice:
    case pm::kInvalidChipName:
      return PmError::kNotThisGpu;
    default:
      return PmError::kOther;
  }
}

class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { std::free(data_); }
  bool make(std::size_t bytes) {
    data_ = static_cast<std::uint8_t*>(std::calloc(1, bytes == 0 ? 1 : bytes));
    bytes_ = bytes;
    return data_ != nullptr;
  }
  std::uint8_t* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::uint8_t* data_ = nullptr;
  std::size_t bytes_ = 0;
};

std::uint64_t monotonic_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * kBillion + static_cast<std::uint64_t>(t.tv_nsec);
}

void nap(std::uint64_t ns) {
  const timespec t{static_cast<time_t>(ns / kBillion), static_cast<long>(ns % kBillion)};
  ::nanosleep(&t, nullptr);
}

// One window; the destructor gives back what was taken, in reverse. All but one thing: the profiler
// interface stays initialised. It is one for the whole process (cuptiProfilerInitialize() has no
// handle and NVIDIA's header knows no counting of users), so that to take it down could take it
// from another user; whether there is one cannot be asked.
class Window {
 public:
  Window(const Cupti& cupti, const PmRequest& request)
      : cupti_(cupti),
        request_(request),
        longest_sample_ns_(kLongestSampleIntervals * request.interval_ns) {
    for (std::size_t i = 0; i < request.count; ++i) names_[i] = request.metrics[i];
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window() {
    if (sampler_ != nullptr) {
      pm::OfSampler of{{sizeof(pm::OfSampler)}, sampler_};
      if (started_) cupti_.stop(&of);
      cupti_.disable(&of);
    }
    if (host_ != nullptr) {
      pm::HostClose close{{sizeof(pm::HostClose)}, host_};
      cupti_.host_close(&close);
    }
  }

  PmResult run() {
    if (!open_host() || !make_config() || !open_sampler()) return result_;
    if (request_.dry) {
      result_.error = PmError::kNone;
    } else if (sample()) {
      close_sums();
    }
    return result_;
  }

 private:
  bool ask(Call call, void* block, const char* name) {
    result_.cupti = call(block);
    if (result_.cupti == pm::kSuccess) return true;
    result_.call = name;
    result_.error = meaning(result_.cupti);
    return false;
  }
  bool fail(PmError error, const char* call) {
    result_.error = error;
    result_.call = call;
    return false;
  }

  bool open_host() {
    pm::Head head{sizeof(pm::Head)};
    if (!ask(cupti_.initialize, &head, "cuptiProfilerInitialize")) return false;
    pm::ChipName chip{{sizeof(pm::ChipName)}, request_.device, nullptr};
    if (!ask(cupti_.chip_name, &chip, "cuptiDeviceGetChipName")) return false;
    pm::Availability available{{sizeof(pm::Availability)}, request_.device, 0, nullptr};
    if (!ask(cupti_.availability, &available, "cuptiPmSamplingGetCounterAvailability")) {
      return false;
    }
    if (!availability_.make(available.image_bytes)) return fail(PmError::kOther, "malloc");
    available.image = availability_.data();
    if (!ask(cupti_.availability, &available, "cuptiPmSamplingGetCounterAvailability")) {
      return false;
    }
    pm::HostOpen open{
        {sizeof(pm::HostOpen)}, pm::kHostPmSampling, chip.name, availability_.data(), nullptr};
    if (!ask(cupti_.host_open, &open, "cuptiProfilerHostInitialize")) return false;
    host_ = open.host;
    return true;
  }

  bool make_config() {
    pm::HostMetrics metrics{{sizeof(pm::HostMetrics)}, host_, names_, request_.count};
    if (!ask(cupti_.host_metrics, &metrics, "cuptiProfilerHostConfigAddMetrics")) {
      // It answers "invalid parameter" for an unknown name too.
      if (result_.error == PmError::kOther) result_.error = PmError::kUnknownMetric;
      return false;
    }
    pm::HostConfigSize size{{sizeof(pm::HostConfigSize)}, host_, 0};
    if (!ask(cupti_.host_config_size, &size, "cuptiProfilerHostGetConfigImageSize")) return false;
    if (!config_.make(size.image_bytes)) return fail(PmError::kOther, "malloc");
    pm::HostConfig image{{sizeof(pm::HostConfig)}, host_, config_.bytes(), config_.data()};
    if (!ask(cupti_.host_config, &image, "cuptiProfilerHostGetConfigImage")) return false;
    pm::HostPasses passes{{sizeof(pm::HostPasses)}, config_.bytes(), config_.data(), 0};
    if (!ask(cupti_.host_passes, &passes, "cuptiProfilerHostGetNumOfPasses")) return false;
    return passes.passes <= 1 || fail(PmError::kTooManyMetrics, "cuptiProfilerHostGetNumOfPasses");
  }

  bool open_sampler() {
    pm::Enable enable{{sizeof(pm::Enable)}, request_.device, nullptr};
    if (!ask(cupti_.enable, &enable, "cuptiPmSamplingEnable")) return false;
    sampler_ = enable.sampler;
    pm::Config config{{pm::kConfigBytes},
                      sampler_,
                      config_.bytes(),
                      config_.data(),
                      request_.hardware_buffer_bytes,
                      request_.interval_ns,
                      pm::kTriggerTime,
                      pm::kKeepOldest};
    if (request_.by_cycles || cupti_.configure(&config) != pm::kSuccess) {
      // Turing and GA100 have no timer for it (cupti_pmsampling.h), but a trigger that counts
      // cycles of the system clock: 0.3 to 2 GHz, so that samples are somewhat shorter or longer
      // than asked. Each says itself how long it is.
      config.trigger = pm::kTriggerSysClock;
      longest_sample_ns_ = kLongestSampleByCycles * request_.interval_ns;
      if (!ask(cupti_.configure, &config, "cuptiPmSamplingSetConfig")) {
        if (result_.error == PmError::kOther) result_.error = PmError::kNotThisGpu;
        return false;
      }
    }
    pm::DataSize size{{sizeof(pm::DataSize)}, sampler_, names_, request_.count, kMostPmSamples, 0};
    if (!ask(cupti_.data_size, &size, "cuptiPmSamplingGetCounterDataSize")) return false;
    if (!data_.make(size.data_bytes)) return fail(PmError::kOther, "malloc");
    return empty_image();
  }

  bool empty_image() {
    pm::DataOpen open{{sizeof(pm::DataOpen)}, sampler_, data_.bytes(), data_.data()};
    return ask(cupti_.data_open, &open, "cuptiPmSamplingCounterDataImageInitialize");
  }

  bool sample() {
    pm::OfSampler of{{sizeof(pm::OfSampler)}, sampler_};
    if (!ask(cupti_.start, &of, "cuptiPmSamplingStart")) return false;
    started_ = true;
    result_.begin_ns = static_cast<std::int64_t>(monotonic_ns());
    const std::uint64_t end = monotonic_ns() + request_.window_ns;
    for (std::uint64_t now = monotonic_ns(); now < end; now = monotonic_ns()) {
      if (request_.should_stop != nullptr && request_.should_stop(nullptr)) break;
      nap(end - now < request_.decode_each_ns ? end - now : request_.decode_each_ns);
      if (!drain()) return false;
    }
    started_ = false;
    if (!ask(cupti_.stop, &of, "cuptiPmSamplingStop")) return false;
    result_.end_ns = static_cast<std::int64_t>(monotonic_ns());
    return drain();
  }

  // Takes what the card has sampled so far into the sums.
  bool drain() {
    bool more = true;
    while (more) {
      pm::Decode decode{{pm::kDecodeBytes}, sampler_, data_.data(), data_.bytes(), 0, 0};
      if (!ask(cupti_.decode, &decode, "cuptiPmSamplingDecodeData")) return false;
      if (decode.overflow != 0) return fail(PmError::kOverflow, "cuptiPmSamplingDecodeData");
      pm::DataInfo info{{sizeof(pm::DataInfo)}, data_.data(), data_.bytes(), 0, 0, 0};
      if (!ask(cupti_.data_info, &info, "cuptiPmSamplingGetCounterDataInfo")) return false;
      for (std::size_t i = 0; i < info.completed; ++i) {
        if (!add(i)) return false;
      }
      more = decode.stop_reason == pm::kStoppedFull;
      if (!empty_image()) return false;
    }
    return true;
  }

  bool add(std::size_t i) {
    pm::SampleInfo sample{{sizeof(pm::SampleInfo)}, sampler_, data_.data(), data_.bytes(), i, 0, 0};
    if (!ask(cupti_.sample_info, &sample, "cuptiPmSamplingCounterDataGetSampleInfo")) return false;
    if (sample.end_ns <= sample.start_ns) return true;
    const std::uint64_t span = sample.end_ns - sample.start_ns;
    if (span > longest_sample_ns_) return true;
    double values[kMostPmMetrics] = {};
    pm::HostEvaluate evaluate{{sizeof(pm::HostEvaluate)},
                              host_,
                              data_.data(),
                              data_.bytes(),
                              i,
                              names_,
                              request_.count,
                              values};
    if (!ask(cupti_.host_evaluate, &evaluate, "cuptiProfilerHostEvaluateToGpuValues")) return false;
    result_.covered_ns += span;
    ++result_.samples;
    for (std::size_t m = 0; m < request_.count; ++m) {
      if (!std::isfinite(values[m])) continue;  // nothing ran: a ratio of nothing
      // A sample's value stands for its own time.
      sums_[m] += values[m] * static_cast<double>(span);
      weights_[m] += static_cast<double>(span);
    }
    return true;
  }

  void close_sums() {
    if (result_.samples == 0) {
      fail(PmError::kNoSamples, "cuptiPmSamplingGetCounterDataInfo");
      return;
    }
    for (std::size_t m = 0; m < request_.count; ++m) {
      if (weights_[m] > 0) result_.values[m] = sums_[m] / weights_[m];
    }
    result_.error = PmError::kNone;
  }

  const Cupti& cupti_;
  const PmRequest& request_;
  std::uint64_t longest_sample_ns_;
  const char* names_[kMostPmMetrics] = {};
  bool started_ = false;
  void* host_ = nullptr;
  void* sampler_ = nullptr;
  Buffer availability_, config_, data_;
  double sums_[kMostPmMetrics] = {};
  double weights_[kMostPmMetrics] = {};
  PmResult result_{};
};

}  // namespace

bool has_pm_sampling(void* cupti) { return cupti != nullptr && Cupti{}.load(cupti); }

bool pm_chip_name(void* cupti, std::size_t device, char* name, std::size_t size) {
  const auto initialize = reinterpret_cast<Call>(::dlsym(cupti, "cuptiProfilerInitialize"));
  const auto chip_name = reinterpret_cast<Call>(::dlsym(cupti, "cuptiDeviceGetChipName"));
  if (initialize == nullptr || chip_name == nullptr) return false;
  pm::Head head{sizeof(pm::Head)};
  pm::ChipName chip{{sizeof(pm::ChipName)}, device, nullptr};
  if (initialize(&head) != pm::kSuccess || chip_name(&chip) != pm::kSuccess ||
      chip.name == nullptr) {
    return false;
  }
  ::snprintf(name, size, "%s", chip.name);
  return true;
}

PmResult pm_sample(void* cupti, const PmRequest& request) {
  PmResult result;
  Cupti calls{};
  if (cupti == nullptr || !calls.load(cupti)) {
    result.error = PmError::kNoCupti;
    return result;
  }
  if (request.count == 0 || request.count > kMostPmMetrics ||
      request.interval_ns < kShortestIntervalNs || (request.window_ns == 0 && !request.dry)) {
    return result;
  }
  Window window(calls, request);
  return window.run();
}

}  // namespace gpoeo::cupti
