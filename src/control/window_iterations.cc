// SPDX-License-Identifier: Apache-2.0
#include "control/window_iterations.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace gpoeo::control {
namespace {

constexpr int kPasses = 8;
constexpr Seconds kLeast{4.0};
constexpr Seconds kLongest{30.0};

}  // namespace

Seconds passes_length(Seconds iteration) {
  return std::clamp(iteration * kPasses, kLeast, kLongest);
}

void count_iterations(std::span<const Instant> ends, const PassesWindow& window,
                      CounterReading& reading) {
  const auto first = std::ranges::lower_bound(ends, window.begin);
  const auto last = std::ranges::upper_bound(ends, window.end);
  const auto inside = last - first;
  const Seconds iteration =
      inside < 2 ? window.before
                 : to_seconds(*std::prev(last) - *first) / static_cast<double>(inside - 1);
  if (iteration.value() <= 0) return;
  reading.iterations = reading.counted / iteration;
  const double each =
      reading.iterations / static_cast<double>(std::max<std::size_t>(window.passes, 1));
  reading.remainder = each > 0 ? std::abs(each - std::round(each)) / each : 0;
}

}  // namespace gpoeo::control
