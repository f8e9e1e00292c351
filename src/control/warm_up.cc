// SPDX-License-Identifier: Apache-2.0
#include "control/warm_up.h"

#include <cmath>

namespace gpoeo::control {
namespace {

constexpr std::size_t kHalf = 4;
constexpr double kTolerance = 0.1;
constexpr Duration kLongest = std::chrono::seconds(20);

double mean_gap_s(std::span<const Instant> ends) {
  return to_seconds(ends.back() - ends.front()).value() / static_cast<double>(ends.size() - 1);
}

}  // namespace

bool WarmUp::over() const {
  const std::span<const Instant> all = ends_;
  if (all.size() < 2 * kHalf + 1) return false;
  const double before = mean_gap_s(all.last(2 * kHalf + 1).first(kHalf + 1));
  const double after = mean_gap_s(all.last(kHalf + 1));
  return std::abs(after / before - 1) <= kTolerance || all.back() - all.front() >= kLongest;
}

}  // namespace gpoeo::control
