// SPDX-License-Identifier: Apache-2.0
#include "control/state.h"

namespace gpoeo::control {

std::string_view to_string(State state) {
  switch (state) {
    case State::kWarmup:
      return "warmup";
    case State::kBaseline:
      return "baseline";
    case State::kProfile:
      return "profile";
    case State::kSearch:
      return "search";
    case State::kHold:
      return "hold";
    case State::kDefault:
      return "default";
    case State::kIdle:
      return "idle";
    case State::kStop:
      return "stop";
  }
  return "unknown";
}

}  // namespace gpoeo::control
