// SPDX-License-Identifier: Apache-2.0
#include "injection.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

namespace gpoeo::app {

Injection choose_injection(bool wanted) {
  if (!wanted) return {.library = {}, .why_not = "--no-inject"};
  if (const char* own = std::getenv(kInjectionEnv); own != nullptr && *own != '\0') {
    return {
        .library = {},
        .why_not = fmt::format("{} is set to {} already, and is left as it is", kInjectionEnv, own),
        .user_set = true};
  }
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const auto library = self / "../lib/gpoeo/libgpoeo_inject.so";
  if (!std::filesystem::exists(library, error)) {
    return {.library = {},
            .why_not = fmt::format("{} is missing; install gpoeo anew",
                                   library.lexically_normal().string())};
  }
  return {.library = library.lexically_normal().string(), .why_not = {}};
}

}  // namespace gpoeo::app
