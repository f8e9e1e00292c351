// SPDX-License-Identifier: Apache-2.0
#include "control/model_prior.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "response/counter_values.h"

namespace gpoeo::control {
namespace {

model::Profile model_profile(const Profile& from) {
  model::Profile profile;
  profile.power_w = from.power.value();
  profile.utilization = from.gpu_utilization;
  if (from.origin == CounterOrigin::kNone) return profile;
  profile.counters = response::counter_values(from.activity);
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
