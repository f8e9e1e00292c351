// SPDX-License-Identifier: Apache-2.0
// The answer of every NVML call that the twin has no model for.
#pragma once

#include "gpu/nvml/abi.h"

namespace gpoeo::twin::front {

// NOT_SUPPORTED, or UNINITIALIZED before init.
nvml_abi::Return not_modelled() noexcept;

}  // namespace gpoeo::twin::front

// Weak: a modelled call of that name replaces it. Its arguments, whatever they are, are not read.
#define GPOEO_NOT_MODELLED(name)                         \
  __attribute__((weak)) gpoeo::nvml_abi::Return name() { \
    return gpoeo::twin::front::not_modelled();           \
  }
