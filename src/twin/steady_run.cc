// SPDX-License-Identifier: Apache-2.0
#include "twin/steady_run.h"

#include <algorithm>
#include <memory>

#include "twin/card.h"

namespace gpoeo::twin {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

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

// Calls visit(phase, runs an iteration) for all phases of a stage.
template <typename Visit>
void for_phases(const Work& work, int stage_index, Visit visit) {
  const Stage& stage = work.stages[at(stage_index)];
  for (int v = stage.first_variant; v < stage.first_variant + stage.variant_count; ++v) {
    const Variant& variant = work.variants[at(v)];
    for (int p = 0; p < variant.count; ++p) {
      const bool repeated =
          p >= variant.repeat_first && p < variant.repeat_first + variant.repeat_count;
      const Phase& phase = work.phases[at(variant.first + p)];
      visit(variant.first + p, variant.weight * (repeated ? variant.repeats : 1) / phase.every);
    }
  }
}

SteadyPoint exact(const Work& work, const DeviceModel& device, int stage, int memory, int sm) {
  SteadyPoint point;
  double joules = 0;
  for_phases(work, stage, [&](int p, double runs) {
    const PhasePoint& phase = work.point(p, device.pair(memory, sm));
    const double seconds = runs * phase.duration_s;
    point.iteration_s += seconds;
    joules += seconds * static_cast<double>(phase.power_w);
    for (std::size_t a = 0; a < point.activity.size(); ++a)
      point.activity[a] += seconds * static_cast<double>(phase.activity[a]);
  });
  point.power_w = joules / point.iteration_s;
  for (double& a : point.activity) a /= point.iteration_s;
  point.sm_mhz = device.sm_mhz[at(sm)];
  return point;
}

}  // namespace

SteadyRun run_steadily(const Work& work, const DeviceModel& device, int stage, int memory, int sm) {
  const auto trial = alone(work, stage);
  auto state = std::make_unique<CardState>();
  const auto slot = std::make_unique<Work>();
  const auto log = std::make_unique<IterationLog>();
  Instant now = instant_from_ns(0);
  initialize(*state, device, 1, now);
  Card card{*state, device, {slot.get()}, {log.get()}};
  command_memory_lock(card, memory, device.memory_clock_count - 1);
  command_sm_lock(card, 0, sm);
  // A fresh card has a free slot and `trial` is made for this device.
  GPOEO_CHECK(attach_job(card, *trial, {}).has_value());
  const auto pass = [&](Seconds seconds) { advance(card, now += to_duration(seconds)); };
  const JobTruth& truth = state->jobs[0].truth;
  pass(Seconds(10 * device.thermal_tau_s));
  const JobTruth before = truth;
  const auto activity_before = state->activity_integral;
  const std::int64_t activity_from_ns = state->t_ns;
  double clock_sum = 0;
  int clocks = 0;
  // Long enough that the governor's dithering averages out.
  constexpr std::int64_t kIterations = 100;
  constexpr double kStepS = 0.5;  // no multiple of the governor's period or of common iterations
  while (truth.iterations < before.iterations + kIterations || clocks < 60) {
    pass(Seconds(kStepS + 0.0137 * (clocks % 7)));
    clock_sum += device.sm_mhz[at(state->sm)];
    ++clocks;
  }
  SteadyRun run;
  run.iterations = static_cast<double>(truth.iterations - before.iterations);
  run.seconds = static_cast<double>(truth.end_ns - before.end_ns) * 1e-9;
  run.joules = truth.iterations_energy_j - before.iterations_energy_j;
  run.reference_s = truth.reference_s - before.reference_s;
  run.reference_j = truth.reference_j - before.reference_j;
  const double span_s = static_cast<double>(state->t_ns - activity_from_ns) * 1e-9;
  for (std::size_t a = 0; a < run.activity.size(); ++a)
    run.activity[a] = (state->activity_integral[a] - activity_before[a]) / span_s;
  run.sm_mhz = clock_sum / clocks;
  return run;
}

SteadyPoint steady_point(const Work& work, const DeviceModel& device, int stage, int memory,
                         int sm) {
  SteadyPoint point = exact(work, device, stage, memory, sm);
  const auto peak_w =
      static_cast<double>(work.peak_power_w[at(stage)][at(device.pair(memory, sm))]);
  // As arm_governor: leakage can lift a phase that far over its table.
  if (!work.cap_included[at(stage)] && peak_w > 0.95 * device.limit_default_w) {
    const SteadyRun run = run_steadily(work, device, stage, memory, sm);
    // Which variants were drawn is chance; the ratio to what they cost at default clocks is not.
    double reference_s = 0, reference_j = 0;
    for_phases(work, stage, [&](int p, double runs) {
      const Phase& phase = work.phases[at(p)];
      reference_s += runs * phase.reference_s;
      reference_j += runs * phase.reference_s * phase.reference_w;
    });
    point.capped = run.sm_mhz < point.sm_mhz;
    point.iteration_s = reference_s * run.seconds / run.reference_s;
    point.power_w = reference_j * run.joules / run.reference_j / point.iteration_s;
    point.activity = run.activity;
    point.sm_mhz = run.sm_mhz;
  }
  point.memory = memory;
  point.sm = sm;
  return point;
}

SteadyPoint steady_default(const Work& work, const DeviceModel& device, int stage) {
  return steady_point(work, device, stage, 0, device.default_sm);
}

std::vector<SteadyPoint> steady_response(const Work& work, const DeviceModel& device, int stage) {
  std::vector<SteadyPoint> points;
  for (int m = 0; m < device.memory_clock_count; ++m)
    for (int s = 0; s < device.sm_number[at(m)]; ++s)
      points.push_back(steady_point(work, device, stage, m, device.sm_first[at(m)] + s));
  return points;
}

}  // namespace gpoeo::twin
