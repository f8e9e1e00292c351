// SPDX-License-Identifier: Apache-2.0
#include "twin/launch_schedule.h"

#include <algorithm>
#include <cmath>

namespace gpoeo::twin {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// Visits the phases of one iteration in the order in which the card runs them.
template <typename Visit>
void for_each_phase(const Work& work, const Variant& variant, std::int64_t iteration, Visit visit) {
  for (int p = 0, repeat = 0; p < variant.count;) {
    const Phase& phase = work.phases[at(variant.first + p)];
    if ((iteration + 1) % phase.every == 0) visit(phase);
    const bool block_ends =
        variant.repeat_count > 0 && p == variant.repeat_first + variant.repeat_count - 1;
    if (block_ends && ++repeat < variant.repeats)
      p = variant.repeat_first;
    else
      ++p;
  }
}

double mean_iteration_s(const Work& work, const Stage& stage) {
  double mean = 0;
  for (int v = stage.first_variant; v < stage.first_variant + stage.variant_count; ++v) {
    const Variant& variant = work.variants[at(v)];
    for (int p = 0; p < variant.count; ++p) {
      const Phase& phase = work.phases[at(variant.first + p)];
      const bool repeated =
          p >= variant.repeat_first && p < variant.repeat_first + variant.repeat_count;
      mean += variant.weight * phase.reference_s * (repeated ? variant.repeats : 1) / phase.every;
    }
  }
  return mean;
}

}  // namespace

void launches_of_iteration(const Work& work, int variant_index, std::int64_t iteration,
                           Instant begin, Instant end, std::vector<Launch>& out) {
  const Variant& variant = work.variants[at(variant_index)];
  double total_s = 0;
  for_each_phase(work, variant, iteration, [&](const Phase& p) { total_s += p.reference_s; });
  if (!(total_s > 0)) return;
  const double scale = to_seconds(end - begin).value() / total_s;
  double passed_s = 0;
  for_each_phase(work, variant, iteration, [&](const Phase& phase) {
    for (int k = 0; k < phase.launches; ++k) {
      const double within = phase.reference_s * k / phase.launches;
      out.push_back({begin + to_duration(Seconds((passed_s + within) * scale)),
                     static_cast<std::uint64_t>(phase.function_id + k)});
    }
    passed_s += phase.reference_s;
  });
}

std::int64_t iterations_in(const Work& work, Seconds seconds) {
  double left_s = seconds.value();
  std::int64_t iterations = 0;
  for (int s = 0; left_s > 0;) {
    const Stage& stage = work.stages[at(s)];
    const double each_s = mean_iteration_s(work, stage);
    const auto fit = static_cast<std::int64_t>(left_s / each_s);
    const bool last = s + 1 == work.stage_count;
    const bool stays = stage.iterations == 0 || (last && !work.loop_stages);
    const std::int64_t here = stays ? fit : std::min(fit, stage.iterations);
    iterations += here;
    if (stays || here < stage.iterations) break;
    left_s -= static_cast<double>(here) * each_s;
    s = last ? 0 : s + 1;
  }
  return std::max<std::int64_t>(1, iterations);
}

}  // namespace gpoeo::twin
