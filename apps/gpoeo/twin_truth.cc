// SPDX-License-Identifier: Apache-2.0
#include "twin_truth.h"

#include "twin/judge.h"

namespace gpoeo::app {

std::optional<report::TruthSection> twin_truth(twin::Segment& segment) {
  report::TruthSection sum;
  double seconds = 0, reference_s = 0, reference_j = 0;
  for (unsigned card = 0; card < segment.card_count(); ++card) {
    const auto truth = twin::truth(segment, card);
    if (!truth) continue;
    for (const auto& job : truth->jobs) {
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
