// SPDX-License-Identifier: Apache-2.0
#include "model/features.h"

#include <algorithm>
#include <cmath>

namespace gpoeo::model {
namespace {

using response::Counter;

struct FeatureName {
  std::string_view name, unit;
};
constexpr std::array<FeatureName, kFeatureCount> kNames{{
    {"gr_active", "0..1"},
    {"sm_active", "0..1"},
    {"sm_occupancy", "0..1"},
    {"tensor_active", "0..1"},
    {"dram_active", "0..1"},
    {"fp64_active", "0..1"},
    {"fp32_active", "0..1"},
    {"fp16_active", "0..1"},
    {"log_pcie_tx", "ln(1 + MB/s)"},
    {"log_pcie_rx", "ln(1 + MB/s)"},
    {"power_fraction", "of the limit"},
    {"utilization", "0..1"},
    {"sm_per_gr", "ratio"},
    {"dram_per_gr", "ratio"},
    {"dram_per_sm", "ratio"},
    {"pipe_max", "0..1"},
    {"memory_slowdown", "default memory clock / this one"},
    {"sm_count", "SMs"},
    {"boost", "GHz"},
    {"bandwidth", "GB/s"},
    {"power_limit", "W"},
}};

// Below this a ratio of activities is noise.
constexpr double kLeastActivity = 0.02;

std::optional<double> ratio(const std::optional<double>& a, const std::optional<double>& b) {
  if (!a || !b) return std::nullopt;
  return std::clamp(*a / std::max(*b, kLeastActivity), 0.0, 1.0);
}

std::optional<double> log_rate(const std::optional<double>& bytes_per_s) {
  if (!bytes_per_s) return std::nullopt;
  return std::log1p(std::max(0.0, *bytes_per_s) / 1e6);
}

}  // namespace

std::string_view to_string(Feature feature) {
  return kNames[static_cast<std::size_t>(feature)].name;
}
std::string_view unit(Feature feature) { return kNames[static_cast<std::size_t>(feature)].unit; }

Features make_features(const Device& device, const Profile& profile) {
  const response::CounterValues& c = profile.counters;
  Features f;
  f[Feature::kGrActive] = c[Counter::kGrActive];
  f[Feature::kSmActive] = c[Counter::kSmActive];
  f[Feature::kSmOccupancy] = c[Counter::kSmOccupancy];
  f[Feature::kTensorActive] = c[Counter::kTensorActive];
  f[Feature::kDramActive] = c[Counter::kDramActive];
  f[Feature::kFp64Active] = c[Counter::kFp64Active];
  f[Feature::kFp32Active] = c[Counter::kFp32Active];
  f[Feature::kFp16Active] = c[Counter::kFp16Active];
  f[Feature::kLogPcieTx] = log_rate(c[Counter::kPcieTxBytesPerS]);
  f[Feature::kLogPcieRx] = log_rate(c[Counter::kPcieRxBytesPerS]);
  if (device.power_limit_w > 0)
    f[Feature::kPowerFraction] = std::clamp(profile.power_w / device.power_limit_w, 0.01, 2.0);
  f[Feature::kUtilization] = profile.utilization;
  f[Feature::kSmPerGr] = ratio(c[Counter::kSmActive], c[Counter::kGrActive]);
  f[Feature::kDramPerGr] = ratio(c[Counter::kDramActive], c[Counter::kGrActive]);
  f[Feature::kDramPerSm] = ratio(c[Counter::kDramActive], c[Counter::kSmActive]);
  for (const Counter pipe :
       {Counter::kTensorActive, Counter::kFp64Active, Counter::kFp32Active, Counter::kFp16Active})
    if (c[pipe]) f[Feature::kPipeMax] = std::max(f.or_else(Feature::kPipeMax, 0), *c[pipe]);
  f[Feature::kMemorySlowdown] = 1.0;
  f[Feature::kSmCount] = device.sm_count;
  if (device.sm_mhz > 0) f[Feature::kBoostGhz] = device.sm_mhz / 1000;
  f[Feature::kBandwidth] = device.bandwidth_gb_per_s;
  if (device.power_limit_w > 0) f[Feature::kPowerLimit] = device.power_limit_w;
  return f;
}

}  // namespace gpoeo::model
