// SPDX-License-Identifier: Apache-2.0
// Identities of simulated cards: stable for a store's name and the card's index.
#pragma once

#include <string_view>

#include "twin/card_store.h"

namespace gpoeo::twin {

// UUIDs begin with "GPU-7714e500-" so that a simulated card is known by its UUID alone.
inline constexpr std::string_view kUuidPrefix = "GPU-7714e500-";
CardName make_card_name(std::string_view store_name, unsigned card);

}  // namespace gpoeo::twin
