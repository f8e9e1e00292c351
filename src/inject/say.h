// SPDX-License-Identifier: Apache-2.0
// Messages of the injected library: none, unless GPOEO_INJECT_LOG=1 asks for them.
#pragma once

namespace gpoeo::inject {

inline constexpr char kLogEnv[] = "GPOEO_INJECT_LOG";

// One line on stderr, "gpoeo-inject[pid]: ...".
__attribute__((format(printf, 1, 2))) void say(const char* format, ...);

}  // namespace gpoeo::inject
