// SPDX-License-Identifier: Apache-2.0
#include "control/iteration_window.h"

#include <cmath>

namespace gpoeo::control {
namespace {

// An iteration that takes this many mean ones is a pause, once there are a few to compare with.
constexpr double kPauseFactor = 4.0;
constexpr std::size_t kCompareWith = 4;
// And no pause is shorter than this: tiny iterations may be held up by the host for a moment.
constexpr Duration kLeastPause = std::chrono::milliseconds(300);

}  // namespace

void IterationWindow::add(std::span<const Instant> ends) {
  if (ready()) return;  // what comes after is the next window's
  for (const Instant end : ends) {
    if (end < from_ || (!ends_.empty() && end <= ends_.back())) continue;
    if (ends_.size() > kCompareWith) {
      const Duration mean =
          (ends_.back() - ends_.front()) / static_cast<std::int64_t>(ends_.size() - 1);
      const Duration gap = end - ends_.back();
      const bool pause =
          gap > kLeastPause && to_seconds(gap).value() > kPauseFactor * to_seconds(mean).value();
      if (pause && !ready()) {
        ++pauses_;
        ends_.clear();
      } else if (pause) {
        return;  // what came before the pause is enough
      }
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
