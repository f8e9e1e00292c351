// SPDX-License-Identifier: Apache-2.0
#include "twin/reference.h"

#include <algorithm>
#include <memory>

#include "twin/card.h"

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

// Only this stage, for good, without chance but for the choice of variants.
std::unique_ptr<Work> alone(const Work& work, int stage) {
  auto trial = std::make_unique<Work>(work);
  trial->stages[0] = work.stages[at(stage)];
  trial->stages[0].iterations = 0;
  trial->stage_count = 1;
  trial->mean_power_w[0] = work.mean_power_w[at(stage)];
  trial->peak_power_w[0] = work.peak_power_w[at(stage)];
  trial->cap_included[0] = 0;
  trial->length_count = 0;
  trial->jitter_cv = trial->drift_sigma = trial->power_drift_sigma = 0;
  return trial;
}

struct Ratios {
  double time, energy;  // of what came out to what the references said
};

Ratios run_capped(const Work& work, const DeviceModel& device, int stage) {
  const auto trial = alone(work, stage);
  auto state = std::make_unique<CardState>();
  const auto slot = std::make_unique<Work>();
  const auto log = std::make_unique<IterationLog>();
  Instant now = instant_from_ns(0);
  initialize(*state, device, 1, now);
  Card card{*state, device, {slot.get()}, {log.get()}};
  // A fresh card has a free slot and `trial` is made for this device.
  GPOEO_CHECK(attach_job(card, *trial, {}).has_value());
  const auto pass = [&](Seconds seconds) { advance(card, now += to_duration(seconds)); };
  const JobTruth& truth = state->jobs[0].truth;
  pass(Seconds(10 * device.thermal_tau_s));
  const JobTruth before = truth;
  // Long enough that the governor's dithering averages out.
  constexpr std::int64_t kIterations = 100;
  while (truth.iterations < before.iterations + kIterations) pass(Seconds(30));
  return {static_cast<double>(truth.end_ns - before.end_ns) * 1e-9 /
              (truth.reference_s - before.reference_s),
          (truth.iterations_energy_j - before.iterations_energy_j) /
              (truth.reference_j - before.reference_j)};
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
  const Ratios ratios = run_capped(work, device, stage);
  for_phases(work, stage, [&](int, Phase& phase) {
    phase.reference_s *= ratios.time;
    phase.reference_w *= ratios.energy / ratios.time;
  });
}

}  // namespace gpoeo::twin
