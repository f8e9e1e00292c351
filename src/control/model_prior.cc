// SPDX-License-Identifier: Apache-2.0
#include "control/model_prior.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace gpoeo::control {
namespace {

model::Profile model_profile(const Profile& from) {
  using response::Counter;
  model::Profile profile;
  profile.power_w = from.power.value();
  profile.utilization = from.gpu_utilization;
  if (from.origin == CounterOrigin::kNone) return profile;
  const Activity& a = from.activity;
  profile.counters[Counter::kGrActive] = a.gr_active;
  profile.counters[Counter::kSmActive] = a.sm_active;
  profile.counters[Counter::kSmOccupancy] = a.sm_occupancy;
  profile.counters[Counter::kTensorActive] = a.tensor_active;
  profile.counters[Counter::kDramActive] = a.dram_active;
  profile.counters[Counter::kFp64Active] = a.fp64_active;
  profile.counters[Counter::kFp32Active] = a.fp32_active;
  profile.counters[Counter::kFp16Active] = a.fp16_active;
  profile.counters[Counter::kPcieTxBytesPerS] = a.pcie_tx_bytes_per_s;
  profile.counters[Counter::kPcieRxBytesPerS] = a.pcie_rx_bytes_per_s;
  return profile;
}

policy::Prediction as_prediction(const model::PointPrediction& p, const model::Device& device) {
  policy::Prediction prediction{.setting = {},
                                .time = p.time,
                                .time_error = p.time_error,
                                .energy = p.energy,
                                .energy_error = p.energy_error};
  const bool slow_memory = p.memory_mhz && device.memory_mhz && *p.memory_mhz < *device.memory_mhz;
  if (slow_memory) prediction.setting.memory = megahertz(*p.memory_mhz);
  if (slow_memory || p.sm_mhz < device.sm_mhz) prediction.setting.sm = megahertz(p.sm_mhz);
  return prediction;
}

}  // namespace

std::optional<ModelledCard> modelled_card(const gpu::Device& device) {
  const gpu::Capabilities& can = device.capabilities();
  if (can.clocks.empty() || can.sm_clocks().empty() || !can.power_limits) return std::nullopt;
  ModelledCard card;
  card.device.name = device.identity().name;
  card.device.sm_mhz = to_mhz(can.sm_clocks().back());
  card.device.power_limit_w = can.power_limits->standard.value();
  for (const gpu::MemoryClockEntry& entry : can.clocks) {
    model::MemoryClock& clock = card.clocks.emplace_back();
    clock.memory_mhz = to_mhz(entry.memory);
    for (const Hertz sm : entry.sm) clock.sm_mhz.push_back(to_mhz(sm));
  }
  std::ranges::sort(card.clocks, std::greater{}, &model::MemoryClock::memory_mhz);
  card.device.memory_mhz = card.clocks.front().memory_mhz;
  return card;
}

Predict predict_with(std::shared_ptr<const model::Predictor> predictor, ModelledCard card) {
  return [predictor = std::move(predictor), card = std::move(card)](const Profile& profile) {
    std::vector<policy::Prediction> predictions;
    for (const auto& p : predictor->predict(card.device, model_profile(profile), card.clocks)) {
      predictions.push_back(as_prediction(p, card.device));
    }
    return predictions;
  };
}

}  // namespace gpoeo::control
