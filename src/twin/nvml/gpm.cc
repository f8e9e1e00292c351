// SPDX-License-Identifier: Apache-2.0
// GPM: activity counters as differences of two samples. Two samples of one step of the counters
// give NaN, as on an H200.
#include <pthread.h>

#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <set>

#include "twin/nvml/front.h"

namespace gpoeo::nvml_abi {
struct GpmSampleRecord {
  unsigned card;
  bool taken;
  gpoeo::twin::GpmSnapshot snapshot;
};
}  // namespace gpoeo::nvml_abi

using namespace gpoeo::nvml_abi;
using namespace gpoeo::twin;
using namespace gpoeo::twin::front;

namespace {

constexpr unsigned kRequestVersion = 1;
constexpr double kPercent = 100;
constexpr double kPerMebibyte = 1.0 / (1024 * 1024);

struct Metric {
  GpmMetricId id;
  Activity activity;
  double scale;
  const char* name;
  const char* unit;
};
constexpr Metric kMetrics[] = {
    {kGpmGraphics, Activity::kGrActive, kPercent, "Graphics activity", "%"},
    {kGpmSm, Activity::kSmActive, kPercent, "SM activity", "%"},
    {kGpmSmOccupancy, Activity::kSmOccupancy, kPercent, "SM occupancy", "%"},
    {kGpmAnyTensor, Activity::kTensorActive, kPercent, "Tensor activity", "%"},
    {kGpmDramBandwidth, Activity::kDramActive, kPercent, "DRAM activity", "%"},
    {kGpmFp64, Activity::kFp64Active, kPercent, "FP64 activity", "%"},
    {kGpmFp32, Activity::kFp32Active, kPercent, "FP32 activity", "%"},
    {kGpmFp16, Activity::kFp16Active, kPercent, "FP16 activity", "%"},
    {kGpmPcieTx, Activity::kPcieTxBytesPerS, kPerMebibyte, "PCIe sent", "MiB/s"},
    {kGpmPcieRx, Activity::kPcieRxBytesPerS, kPerMebibyte, "PCIe received", "MiB/s"},
};

const Metric* find_metric(unsigned id) {
  for (const Metric& metric : kMetrics) {
    if (metric.id == id) return &metric;
  }
  return nullptr;
}

// Samples handed out, so that a pointer that is none of them is an error and not a crash. Leaked
// and held across a fork like the library's other state.
struct Registry {
  std::mutex mutex;
  std::set<GpmSampleRecord*> samples;
};
Registry& registry() {
  static auto* const the_registry = [] {
    auto* made = new Registry;
    pthread_atfork([] { registry().mutex.lock(); }, [] { registry().mutex.unlock(); },
                   [] { registry().mutex.unlock(); });
    return made;
  }();
  return *the_registry;
}
bool known(GpmSample sample) {
  const std::lock_guard lock(registry().mutex);
  return registry().samples.contains(sample);
}

void fill(GpmMetric& metric, const GpmSnapshot& earlier, const GpmSnapshot& later) {
  metric.value = 0;
  metric.status = kNotSupported;
  const Metric* found = find_metric(metric.id);
  if (found == nullptr) return;
  const auto i = static_cast<std::size_t>(found->activity);
  if (!earlier.present[i] || !later.present[i]) return;
  const double seconds = gpoeo::to_seconds(later.time - earlier.time).value();
  metric.value = seconds > 0 ? (later.integral[i] - earlier.integral[i]) / seconds * found->scale
                             : std::numeric_limits<double>::quiet_NaN();
  metric.short_name = metric.long_name = found->name;
  metric.unit = found->unit;
  metric.status = kSuccess;
}

}  // namespace

extern "C" {

Return nvmlGpmQueryDeviceSupport(DeviceHandle handle, GpmSupport* support) {
  return on_card(
      handle,
      [&](const CardFront& card) {
        if (support->version != kRequestVersion) return kArgumentVersionMismatch;
        support->supported =
            card.device().support(gpoeo::gpu::Reading::kCounters) == gpoeo::gpu::Support::kYes;
        return kSuccess;
      },
      support);
}

Return nvmlGpmSampleAlloc(GpmSample* sample) {
  return guarded([&](Segment&) {
    if (sample == nullptr) return kInvalidArgument;
    auto made = std::make_unique<GpmSampleRecord>();
    const std::lock_guard lock(registry().mutex);
    registry().samples.insert(made.get());
    *sample = made.release();
    return kSuccess;
  });
}

Return nvmlGpmSampleFree(GpmSample sample) {
  return guarded([&](Segment&) {
    const std::lock_guard lock(registry().mutex);
    if (registry().samples.erase(sample) == 0) return kInvalidArgument;
    delete sample;
    return kSuccess;
  });
}

Return nvmlGpmSampleGet(DeviceHandle handle, GpmSample sample) {
  return on_card(handle, [&](const CardFront& card) {
    if (!known(sample)) return kInvalidArgument;
    const auto snapshot = card.gpm_snapshot();
    if (!snapshot) return to_return(snapshot.error());
    sample->card = card.index();
    sample->snapshot = *snapshot;
    sample->taken = true;
    return kSuccess;
  });
}

Return nvmlGpmMetricsGet(GpmRequest* request) {
  return guarded([&](Segment&) {
    if (request == nullptr) return kInvalidArgument;
    if (request->version != kRequestVersion) return kArgumentVersionMismatch;
    // A caller built against an older header has room for fewer metrics: `count` is what is there.
    if (request->count == 0 || request->count > kGpmMaxMetrics) return kInvalidArgument;
    if (!known(request->earlier) || !known(request->later)) return kInvalidArgument;
    if (!request->earlier->taken || !request->later->taken ||
        request->earlier->card != request->later->card) {
      return kInvalidArgument;
    }
    for (unsigned i = 0; i < request->count; ++i) {
      fill(request->metrics[i], request->earlier->snapshot, request->later->snapshot);
    }
    return kSuccess;
  });
}

Return nvmlGpmQueryIfStreamingEnabled(DeviceHandle handle, unsigned* state) {
  return answer(handle, state, [](const DeviceModel&) { return 0; });
}

}  // extern "C"
