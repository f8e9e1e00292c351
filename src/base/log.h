// SPDX-License-Identifier: Apache-2.0
// Messages for people, on stderr, one line each. Numbers for machines go through report/.
// Levels: error = something the user must act on; warning = the run goes on with less; info = what
// a user wants to know once; debug = what a developer needs.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace gpoeo::log {

enum class Level { kDebug, kInfo, kWarning, kError };

// Process-wide because stderr is; set once in main before any thread starts.
void set_level(Level least);
// "gpoeo: message" (warnings and errors say so). One write(2) a line, so lines never mix.
void write(Level level, std::string_view message);
// As it is, on stderr. Never waits: when nobody reads what stderr is piped into, the text is lost,
// since a message must not hold up the giving back of clocks.
void write_raw(std::string_view text);

template <typename... Args>
void error(fmt::format_string<Args...> f, Args&&... args) {
  write(Level::kError, fmt::format(f, std::forward<Args>(args)...));
}
template <typename... Args>
void warning(fmt::format_string<Args...> f, Args&&... args) {
  write(Level::kWarning, fmt::format(f, std::forward<Args>(args)...));
}
template <typename... Args>
void info(fmt::format_string<Args...> f, Args&&... args) {
  write(Level::kInfo, fmt::format(f, std::forward<Args>(args)...));
}
template <typename... Args>
void debug(fmt::format_string<Args...> f, Args&&... args) {
  write(Level::kDebug, fmt::format(f, std::forward<Args>(args)...));
}

}  // namespace gpoeo::log
