// SPDX-License-Identifier: Apache-2.0
#include "injection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace gpoeo::app {
namespace {

constexpr std::string_view kProfilers[] = {"ncu", "nsys", "nvprof", "compute-sanitizer",
                                           "nv-nsight-cu-cli"};

// The profiler that the command starts, as far as its words tell.
std::string profiler_in(const std::vector<std::string>& command) {
  for (const std::string& word : command) {
    const std::string name = std::filesystem::path(word).filename().string();
    if (std::ranges::find(kProfilers, name) != std::end(kProfilers)) return name;
  }
  return "";
}

// In the build tree as where it is installed.
std::filesystem::path beside_this_program(std::string_view name) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  return (self / "../lib/gpoeo" / name).lexically_normal();
}

}  // namespace

Injection choose_injection(bool wanted, const std::vector<std::string>& command) {
  if (!wanted) return {.library = {}, .why_not = "--no-inject"};
  if (const char* own = std::getenv(kInjectionEnv); own != nullptr && *own != '\0') {
    return {
        .library = {},
        .why_not = fmt::format("{} is set to {} already, and is left as it is", kInjectionEnv, own),
        .tell = true};
  }
  if (const std::string profiler = profiler_in(command); !profiler.empty()) {
    return {.library = {},
            .why_not = fmt::format("{} needs {} for itself", profiler, kInjectionEnv),
            .tell = true};
  }
  const auto library = beside_this_program("libgpoeo_inject.so");
  std::error_code error;
  if (!std::filesystem::exists(library, error)) {
    return {.library = {},
            .why_not = fmt::format("{} is missing; install gpoeo anew", library.string())};
  }
  return {.library = library.string(), .why_not = {}};
}

std::filesystem::path counters_program() { return beside_this_program("gpoeo-counters"); }

}  // namespace gpoeo::app
