// SPDX-License-Identifier: Apache-2.0
#include "control/pause.h"

namespace gpoeo::control {
namespace {

// An iteration that takes this many mean ones is a pause, once there are a few to compare with.
constexpr double kPauseFactor = 4.0;
constexpr std::uint64_t kCompareWith = 4;
// And no pause is shorter than this: tiny iterations may be held up by the host for a moment.
constexpr Duration kLeastPause = std::chrono::milliseconds(300);

}  // namespace

bool is_pause(Instant first_end, Instant last_end, std::uint64_t iterations, Instant next_end) {
  if (iterations < kCompareWith) return false;
  const Duration gap = next_end - last_end;
  const double mean_s = to_seconds(last_end - first_end).value() / static_cast<double>(iterations);
  return gap > kLeastPause && to_seconds(gap).value() > kPauseFactor * mean_s;
}

}  // namespace gpoeo::control
