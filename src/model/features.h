// SPDX-License-Identifier: Apache-2.0
// What a predictor is told of a job and of its card, and the numbers that it makes of that. One
// profile window at default clocks is all there is; whatever a card cannot say stays absent.
// Thread rule: values and pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "response/response_table.h"

namespace gpoeo::model {

// The card: what sets its scale. `name` as the driver prints it ("NVIDIA A100-SXM4-80GB").
struct Device {
  std::string name;
  double sm_mhz = 0;         // the clock a loaded card runs at by default
  double power_limit_w = 0;  // default limit
  // Absent when the table or the card does not say.
  std::optional<double> memory_mhz{};  // default
  std::optional<double> sm_count{};
  std::optional<double> bandwidth_gb_per_s{};
};

// One window of whole iterations at default clocks.
struct Profile {
  double power_w = 0;                   // mean
  std::optional<double> utilization{};  // 0..1, NVML's "GPU utilisation"
  response::CounterValues counters{};   // means over the window, DCGM's or GPM's meaning
};

// A memory clock and the SM clocks (MHz, ascending) that go with it.
struct MemoryClock {
  std::optional<double> memory_mhz{};  // absent: the card's only one
  std::vector<double> sm_mhz;
};

enum class Feature {
  kGrActive,
  kSmActive,
  kSmOccupancy,
  kTensorActive,
  kDramActive,
  kFp64Active,
  kFp32Active,
  kFp16Active,
  kLogPcieTx,  // ln(1 + bytes/s over 1 MB/s)
  kLogPcieRx,
  kPowerFraction,  // of the default limit
  kUtilization,
  kSmPerGr,  // how many SMs work while anything does
  kDramPerGr,
  kDramPerSm,
  kPipeMax,         // the busiest arithmetic pipe
  kMemorySlowdown,  // default memory clock over this one's: 1 at default
  kSmCount,
  kBoostGhz,
  kBandwidth,   // GB/s
  kPowerLimit,  // W
  kCount,
};
inline constexpr std::size_t kFeatureCount = static_cast<std::size_t>(Feature::kCount);
std::string_view to_string(Feature feature);
std::string_view unit(Feature feature);

struct Features {
  std::array<std::optional<double>, kFeatureCount> values{};

  const std::optional<double>& operator[](Feature f) const {
    return values[static_cast<std::size_t>(f)];
  }
  std::optional<double>& operator[](Feature f) { return values[static_cast<std::size_t>(f)]; }
  double or_else(Feature f, double fallback) const { return (*this)[f].value_or(fallback); }
};

// At the default memory clock (kMemorySlowdown = 1).
Features make_features(const Device& device, const Profile& profile);

}  // namespace gpoeo::model
