// SPDX-License-Identifier: Apache-2.0
#include "twin/nvml/not_modelled.h"

#include "twin/nvml/front.h"

namespace gpoeo::twin::front {

nvml_abi::Return not_modelled() noexcept {
  return guarded([](Segment&) { return nvml_abi::kNotSupported; });
}

}  // namespace gpoeo::twin::front
