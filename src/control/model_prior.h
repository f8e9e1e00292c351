// SPDX-License-Identifier: Apache-2.0
// Between the control loop and the model: what a profile and a card are in the model's words, and
// what its predictions are in the policy's.
#pragma once

#include <memory>
#include <vector>

#include "control/profile_stage.h"
#include "model/predictor.h"

namespace gpoeo::control {

// A card as the model wants it. The first memory clock is the default.
struct ModelledCard {
  model::Device device;
  std::vector<model::MemoryClock> clocks;
};

// From what the driver says; nullopt when it lists no clocks or no power limit.
std::optional<ModelledCard> modelled_card(const gpu::Device& device);

// A model whose held-out error of time is larger than this starts a search worse than knowing
// nothing: measured search without it saved more on the Titan X, whose model errs by 17 %
// (docs/results.md).
inline constexpr double kLargestModelError = 0.12;

// Asks the predictor of every setting of the card.
Predict predict_with(std::shared_ptr<const model::Predictor> predictor, ModelledCard card);

}  // namespace gpoeo::control
