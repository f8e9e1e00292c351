// SPDX-License-Identifier: Apache-2.0
// Whether and how libgpoeo_inject.so gets into the job.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace gpoeo::app {

struct Injection {
  std::string library;  // path for CUDA_INJECTION64_PATH; empty: nothing is set
  std::string why_not;  // set when `library` is empty
  bool tell = false;    // worth a line at the start: the user may not expect it
};

inline constexpr char kInjectionEnv[] = "CUDA_INJECTION64_PATH";

// The library beside this program (build tree or installed); `wanted` is false under --no-inject.
// The user's own CUDA_INJECTION64_PATH is left alone: there is room for one. NVIDIA's profilers
// need it for themselves, and ncu does not even start where it is set: a command that names one
// gets no library.
Injection choose_injection(bool wanted, const std::vector<std::string>& command);

// Reads counters beside the job (apps/counters), from where it lies beside this program.
std::filesystem::path counters_program();

}  // namespace gpoeo::app
