// SPDX-License-Identifier: Apache-2.0
// Finds the CUPTI that this process should use. Looked for, in this order: one that is loaded
// already (PyTorch brings its own), one beside the CUDA runtime that is loaded, the loader's own
// search path, the usual place of the toolkit. Once loaded it is never unloaded.
#pragma once

#include "inject/cupti_abi.h"

namespace gpoeo::inject {

struct CuptiLibrary {
  void* handle = nullptr;
  std::uint32_t version = 0;
  cupti::GetVersion get_version = nullptr;
  cupti::Subscribe subscribe = nullptr;
  cupti::SubscribeV2 subscribe_v2 = nullptr;  // CUDA 13
  cupti::Unsubscribe unsubscribe = nullptr;
  cupti::EnableCallback enable_callback = nullptr;
};

enum class CuptiFound { kYes, kNone, kUnknownVersion };

// Thread rule: once, from InitializeInjection().
CuptiFound find_cupti(CuptiLibrary* out);

}  // namespace gpoeo::inject
