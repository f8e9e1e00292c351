// SPDX-License-Identifier: Apache-2.0
// Inside the card core: how jobs go from phase to phase and iteration to iteration. Only card*.cc
// include this.
#pragma once

#include "twin/card.h"

namespace gpoeo::twin {

// Slot `slot`'s present phase has ended at card.state.t_ns.
void end_phase(Card& card, int slot);

}  // namespace gpoeo::twin
