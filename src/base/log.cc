// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <poll.h>
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
  write_raw(line);
}

void write_raw(std::string_view text) {
  // A pipe that polls writable takes PIPE_BUF bytes without blocking; our lines are shorter.
  pollfd out{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&out, 1, 0) != 1 || (out.revents & POLLOUT) == 0) return;
  // A lost line is not worth an error of its own.
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace gpoeo::log
