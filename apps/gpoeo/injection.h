// SPDX-License-Identifier: Apache-2.0
// Whether and how libgpoeo_inject.so gets into the job.
#pragma once

#include <string>

namespace gpoeo::app {

struct Injection {
  std::string library;    // path for CUDA_INJECTION64_PATH; empty: nothing is set
  std::string why_not;    // set when `library` is empty
  bool user_set = false;  // because the user has set the variable: worth a line at the start
};

inline constexpr char kInjectionEnv[] = "CUDA_INJECTION64_PATH";

// The library beside this program (build tree or installed); `wanted` is false under --no-inject.
// The user's own CUDA_INJECTION64_PATH is left alone: there is room for one.
Injection choose_injection(bool wanted);

}  // namespace gpoeo::app
