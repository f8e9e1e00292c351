// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml/gpm_counters.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace gpoeo::nvml {
namespace {

constexpr double kMebibyte = 1024.0 * 1024.0;

struct Metric {
  abi::GpmMetricId id;
  std::optional<double> gpu::Counters::*field;
  double to_si;
};
constexpr Metric kMetrics[] = {
    {abi::kGpmGraphics, &gpu::Counters::gr_active, 0.01},
    {abi::kGpmSm, &gpu::Counters::sm_active, 0.01},
    {abi::kGpmSmOccupancy, &gpu::Counters::sm_occupancy, 0.01},
    {abi::kGpmAnyTensor, &gpu::Counters::tensor_active, 0.01},
    {abi::kGpmDramBandwidth, &gpu::Counters::dram_active, 0.01},
    {abi::kGpmFp64, &gpu::Counters::fp64_active, 0.01},
    {abi::kGpmFp32, &gpu::Counters::fp32_active, 0.01},
    {abi::kGpmFp16, &gpu::Counters::fp16_active, 0.01},
    {abi::kGpmPcieTx, &gpu::Counters::pcie_tx_bytes_per_s, kMebibyte},
    {abi::kGpmPcieRx, &gpu::Counters::pcie_rx_bytes_per_s, kMebibyte},
};

// A percentage may read a little over 100 by the two samples' timing; more than that, or less than
// nothing, is no activity.
bool plausible(const Metric& metric, double value) {
  if (!std::isfinite(value) || value < 0) return false;
  return metric.to_si > 1 || value <= 110.0;
}

}  // namespace

gpu::Support GpmCounters::support(const Session& session, abi::DeviceHandle handle) {
  const Getters& get = session.get();
  if (get.gpm_support == nullptr || get.gpm_alloc == nullptr || get.gpm_free == nullptr ||
      get.gpm_sample == nullptr || get.gpm_metrics == nullptr) {
    return gpu::Support::kNo;
  }
  abi::GpmSupport answer{.version = 1, .supported = 0};
  switch (get.gpm_support(handle, &answer)) {
    case abi::kSuccess:
      return answer.supported != 0 ? gpu::Support::kYes : gpu::Support::kNo;
    case abi::kNotSupported:
    case abi::kFunctionNotFound:
      return gpu::Support::kNo;
    case abi::kNoPermission:
      return gpu::Support::kNoPermission;
    default:
      return gpu::Support::kUnknown;
  }
}

Result<GpmCounters::Sample> GpmCounters::take() {
  const Library& lib = session_->library();
  abi::GpmSample raw = nullptr;
  GPOEO_TRY_STATUS(lib.check(lib.get().gpm_alloc(&raw), label_, "nvmlGpmSampleAlloc"));
  Sample sample(raw, Free{lib.get().gpm_free});
  GPOEO_TRY_STATUS(lib.check(lib.get().gpm_sample(handle_, raw), label_, "nvmlGpmSampleGet"));
  return sample;
}

Result<gpu::Counters> GpmCounters::read() {
  const Instant now = session_->clock().now();
  if (!start_) {
    GPOEO_TRY(start_, take());
    start_time_ = now;
    return make_error(ErrorKind::kBusy,
                      fmt::format("{}: the first counter window has just begun", label_));
  }
  const Duration window = now - start_time_;
  if (window < kPeriod) {
    return make_error(
        ErrorKind::kBusy,
        fmt::format("{}: counters move each {} ms, the window has {:.0f} ms", label_,
                    kPeriod / std::chrono::milliseconds(1), to_seconds(window).value() * 1e3));
  }
  GPOEO_TRY(Sample later, take());
  GPOEO_TRY(gpu::Counters counters, difference(later, window));
  start_ = std::move(later);
  start_time_ = now;
  return counters;
}

Result<gpu::Counters> GpmCounters::difference(const Sample& later, Duration window) const {
  const Library& lib = session_->library();
  abi::GpmRequest request{};
  request.version = 1;
  request.count = std::size(kMetrics);
  request.earlier = start_->get();
  request.later = later.get();
  for (std::size_t i = 0; i < std::size(kMetrics); ++i) request.metrics[i].id = kMetrics[i].id;
  GPOEO_TRY_STATUS(lib.check(lib.get().gpm_metrics(&request), label_, "nvmlGpmMetricsGet"));

  gpu::Counters counters{};
  counters.window = to_seconds(window);
  bool moved = false;
  for (std::size_t i = 0; i < std::size(kMetrics); ++i) {
    const abi::GpmMetric& metric = request.metrics[i];
    if (metric.status != abi::kSuccess || !plausible(kMetrics[i], metric.value)) continue;
    moved = moved || metric.value > 0;
    counters.*kMetrics[i].field = metric.value * kMetrics[i].to_si;
  }
  // Just over one period, both samples may still be of one step: nothing has moved then. A window
  // of two periods that is all zero is an idle GPU.
  if (!moved && window < 2 * kPeriod) {
    return make_error(ErrorKind::kBusy, fmt::format("{}: counters have not moved yet", label_));
  }
  if (!counters.sm_active && !counters.gr_active && !counters.dram_active) {
    return make_error(ErrorKind::kIo,
                      fmt::format("{}: nvmlGpmMetricsGet: no metric has a value", label_));
  }
  return counters;
}

}  // namespace gpoeo::nvml
