// SPDX-License-Identifier: Apache-2.0
// Utilisation and the driver's sample buffers.
#include <algorithm>
#include <vector>

#include "twin/nvml/front.h"

using namespace gpoeo::nvml_abi;
using namespace gpoeo::twin;
using namespace gpoeo::twin::front;

namespace {

using Samples = std::vector<Sample>;

Sample make_sample(gpoeo::Instant time, unsigned value) {
  Sample sample{};
  sample.time_us = to_stamp_us(time);
  sample.value.as_unsigned = value;
  return sample;
}

gpoeo::Result<Samples> power_samples(const CardFront& card, gpoeo::Instant since) {
  GPOEO_TRY(const auto powers, card.power_samples_since(since));
  Samples samples;
  for (const auto& power : powers) {
    samples.push_back(make_sample(power.time, to_milliwatts(power.power)));
  }
  return samples;
}

// `share_scale` 0 for engines that no job uses: as many samples, all zero.
gpoeo::Result<Samples> utilization_samples(
    const gpoeo::Result<std::vector<UtilizationSample>>& from, double share_scale) {
  if (!from) return std::unexpected(from.error());
  Samples samples;
  for (const auto& sample : *from) {
    samples.push_back(make_sample(sample.time, to_percent(sample.share * share_scale)));
  }
  return samples;
}

gpoeo::Result<Samples> read_samples(const CardFront& card, SamplingType type,
                                    gpoeo::Instant since) {
  switch (type) {
    case kSamplesTotalPower:
      return power_samples(card, since);
    case kSamplesGpuUtilization:
      return utilization_samples(card.gpu_utilization_samples_since(since), 1);
    case kSamplesMemoryUtilization:
      return utilization_samples(card.memory_utilization_samples_since(since), 1);
    case kSamplesEncoder:
    case kSamplesDecoder:
      return utilization_samples(card.gpu_utilization_samples_since(since), 0);
    default:
      return Samples();  // clocks: kept by no driver seen, "not found" as on the H200
  }
}

unsigned capacity(const DeviceModel& device, SamplingType type) {
  const SensorTiming& sensor =
      type == kSamplesTotalPower ? device.power_samples : device.utilization;
  return static_cast<unsigned>(std::max(sensor.capacity, 1));
}

}  // namespace

extern "C" {

Return nvmlDeviceGetUtilizationRates(DeviceHandle handle, Utilization* utilization) {
  return on_card(
      handle,
      [&](const CardFront& card) {
        return give(card.utilization(), utilization, [](const gpoeo::gpu::Utilization& u) {
          return Utilization{to_percent(u.gpu), to_percent(u.memory)};
        });
      },
      utilization);
}

Return nvmlDeviceGetSamples(DeviceHandle handle, SamplingType type, unsigned long long last_seen_us,
                            ValueType* value_type, unsigned* count, Sample* samples) {
  return on_card(
      handle,
      [&](const CardFront& card) {
        if (type >= kSamplesModulePower) return kInvalidArgument;
        if (samples != nullptr && *count == 0) return kInvalidArgument;
        *value_type = kValueUnsigned;
        const auto found = read_samples(card, type, from_stamp_us(last_seen_us));
        if (!found) return to_return(found.error());
        if (found->empty()) return kNotFound;
        if (samples == nullptr) {
          *count = capacity(card.device(), type);
          return kSuccess;
        }
        // The oldest that fit: the caller asks on from the last it got.
        *count = std::min(*count, static_cast<unsigned>(found->size()));
        std::copy_n(found->begin(), *count, samples);
        return kSuccess;
      },
      value_type, count);
}

}  // extern "C"
