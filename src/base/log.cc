// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <string>

namespace gpoeo::log {
namespace {

std::atomic<Level> g_least{Level::kInfo};

}  // namespace

void set_level(Level least) { g_least.store(least, std::memory_order_relaxed); }

void write(Level level, std::string_view message) {
  if (level < g_least.load(std::memory_order_relaxed)) return;
  std::string line = "gpoeo: ";
  if (level == Level::kError) line += "error: ";
  if (level == Level::kWarning) line += "warning: ";
  line += message;
  line += '\n';
  // A lost log line is not worth an error of its own.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace gpoeo::log
