// SPDX-License-Identifier: Apache-2.0
#include "control/iteration_window.h"

#include <algorithm>
#include <cmath>

#include "control/pause.h"

namespace gpoeo::control {
void IterationWindow::add(std::span<const Instant> ends, std::span<const RunBreak> breaks) {
  if (ready()) return;  // what comes after is the next window's
  for (const Instant end : ends) {
    if (end < from_ || (!ends_.empty() && end <= ends_.back())) continue;
    const bool known = std::ranges::any_of(
        breaks, [&](const RunBreak& b) { return b.last_end && b.first_end == end; });
    if (!ends_.empty() && (known || is_pause(ends_.front(), ends_.back(), ends_.size() - 1, end))) {
      if (ready()) return;  // what came before the pause is enough
      ++pauses_;
      ends_.clear();
    }
    ends_.push_back(end);
  }
}

bool IterationWindow::ready() const {
  if (ends_.size() < 3) return false;
  const Seconds span = to_seconds(ends_.back() - ends_.front());
  if (span >= goal_.longest) return true;
  if (span < goal_.least || ends_.size() - 1 < goal_.least_iterations) return false;
  const auto error = relative_error();
  return goal_.precision <= 0 || (error && *error <= goal_.precision);
}

std::optional<double> IterationWindow::relative_error() const {
  if (ends_.size() < 5) return std::nullopt;
  const auto n = static_cast<double>(ends_.size() - 1);
  const double mean = to_seconds(ends_.back() - ends_.front()).value() / n;
  double squares = 0;
  for (std::size_t i = 1; i < ends_.size(); ++i) {
    const double d = to_seconds(ends_[i] - ends_[i - 1]).value() - mean;
    squares += d * d;
  }
  return std::sqrt(squares / (n - 1) / n) / mean;
}

}  // namespace gpoeo::control
