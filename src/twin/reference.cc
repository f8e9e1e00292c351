// SPDX-License-Identifier: Apache-2.0
#include "twin/reference.h"

#include "twin/steady_run.h"

namespace gpoeo::twin {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

template <typename Visit>
void for_phases(Work& work, int stage_index, Visit visit) {
  const Stage& stage = work.stages[at(stage_index)];
  for (int v = stage.first_variant; v < stage.first_variant + stage.variant_count; ++v) {
    const Variant& variant = work.variants[at(v)];
    for (int p = variant.first; p < variant.first + variant.count; ++p)
      visit(p, work.phases[at(p)]);
  }
}

}  // namespace

void set_reference(Work& work, const DeviceModel& device, int stage) {
  const int pair = device.pair(0, device.default_sm);
  for_phases(work, stage, [&](int p, Phase& phase) {
    phase.reference_s = work.point(p, pair).duration_s;
    phase.reference_w = static_cast<double>(work.point(p, pair).power_w);
  });
  const auto peak_w = static_cast<double>(work.peak_power_w[at(stage)][at(pair)]);
  if (work.cap_included[at(stage)] || peak_w < 0.95 * device.limit_default_w) return;
  const SteadyRun run = run_steadily(work, device, stage, 0, device.default_sm);
  const double time_ratio = run.seconds / run.reference_s;
  const double energy_ratio = run.joules / run.reference_j;
  for_phases(work, stage, [&](int, Phase& phase) {
    phase.reference_s *= time_ratio;
    phase.reference_w *= energy_ratio / time_ratio;
  });
}

}  // namespace gpoeo::twin
