// SPDX-License-Identifier: Apache-2.0
#include "twin_truth.h"

#include "twin/judge.h"

namespace gpoeo::app {

std::optional<report::TruthSection> twin_truth(twin::Segment& segment,
                                               const std::vector<unsigned>& cards, Instant since) {
  report::TruthSection sum;
  double seconds = 0, reference_s = 0, reference_j = 0;
  for (const unsigned card : cards) {
    const auto truth = twin::truth(segment, card);
    if (!truth) continue;
    for (const auto& job : truth->jobs) {
      if (job.start_ns < to_unix_ns(since)) continue;
      sum.iterations += static_cast<std::uint64_t>(job.iterations);
      sum.energy_j += job.iterations_energy_j;
      seconds += static_cast<double>(job.end_ns - job.start_ns) * 1e-9;
      reference_s += job.reference_s;
      reference_j += job.reference_j;
    }
  }
  if (sum.iterations == 0 || reference_j <= 0 || reference_s <= 0) return std::nullopt;
  sum.net_saving = 1 - sum.energy_j / reference_j;
  sum.net_slowdown = seconds / reference_s - 1;
  return sum;
}

}  // namespace gpoeo::app
