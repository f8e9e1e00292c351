// SPDX-License-Identifier: Apache-2.0
#include "progress_display.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "base/log.h"
#include "report/render.h"

namespace gpoeo::app {
namespace {

constexpr auto kLiveEvery = std::chrono::seconds(1);
constexpr auto kPlainEvery = std::chrono::minutes(1);

bool is_terminal() {
  const char* term = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

std::string describe(const control::LiveStatus& s) {
  std::string text =
      fmt::format("{} {}", report::format_duration(s.elapsed_s), control::to_string(s.state));
  if (s.sm_mhz) text += fmt::format(" | SM {:.0f} MHz ({})", *s.sm_mhz, s.setting);
  if (s.power_w) text += fmt::format(" | {:.0f} W", *s.power_w);
  text += fmt::format(" | {} iterations", s.iterations);
  if (s.iterations_per_s) text += fmt::format(", {:.3g}/s", *s.iterations_per_s);
  return text;
}

}  // namespace

ProgressDisplay::ProgressDisplay(bool quiet, bool simulated)
    : quiet_(quiet),
      simulated_(simulated),
      terminal_(is_terminal()),
      next_(std::chrono::steady_clock::now() + (terminal_ ? kLiveEvery : kPlainEvery)) {}

void ProgressDisplay::clear() {
  if (!line_shown_) return;
  log::write_raw("\x1b[2K\r");
  line_shown_ = false;
}

void ProgressDisplay::event(const std::string& line) {
  if (quiet_) return;
  clear();
  log::info("{}{}", simulated_ ? "[simulated] " : "", line);
}

void ProgressDisplay::update(const control::LiveStatus& status) {
  if (quiet_ || std::chrono::steady_clock::now() < next_) return;
  next_ = std::chrono::steady_clock::now() + (terminal_ ? kLiveEvery : kPlainEvery);
  if (!terminal_) {
    event(describe(status));
    return;
  }
  // The cursor stays at the line's start, so whatever the job prints next overwrites it.
  log::write_raw(
      fmt::format("\x1b[2K{}gpoeo {}\r", simulated_ ? "[simulated] " : "", describe(status)));
  line_shown_ = true;
}

}  // namespace gpoeo::app
