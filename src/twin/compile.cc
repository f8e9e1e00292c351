// SPDX-License-Identifier: Apache-2.0
#include "twin/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "twin/card.h"
#include "twin/phase_response.h"
#include "twin/reference.h"

namespace gpoeo::twin {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

template <std::size_t N>
void set_text(std::array<char, N>& to, std::string_view text) {
  to.fill('\0');
  std::memcpy(to.data(), text.data(), std::min(text.size(), N - 1));
}

std::unexpected<Error> invalid(const JobSpec& job, std::string_view what) {
  return make_error(ErrorKind::kInvalid, fmt::format("job '{}': {}", job.name, what));
}

int times_run(const VariantSpec& variant, int phase) {
  const bool repeated =
      phase >= variant.repeat_first && phase < variant.repeat_first + variant.repeat_count;
  return repeated ? variant.repeats : 1;
}

Status check_variant(const JobSpec& job, const VariantSpec& variant) {
  double share = 0;
  for (const PhaseSpec& phase : variant.phases) {
    if (!(phase.share >= 0) || phase.every < 1 || phase.launches < 0 || !(phase.level >= 0))
      return invalid(job, fmt::format("phase '{}' has a negative share, level or launches, or "
                                      "`every` under 1; correct it",
                                      phase.name));
    if (phase.every == 1) share += phase.share;
  }
  if (!(share > 0))
    return invalid(job, "an iteration has no phase of positive share; give one `share = 1`");
  if (!(variant.weight > 0) || !(variant.length > 0))
    return invalid(job, "a variant's weight and length must be over 0");
  const auto count = static_cast<int>(variant.phases.size());
  if (variant.repeats < 1 || variant.repeat_first < 0 || variant.repeat_count < 0 ||
      variant.repeat_first + variant.repeat_count > count)
    return invalid(job, "the repeated phases lie outside of the variant; correct `repeat`");
  return {};
}

Status check(const JobSpec& job) {
  std::size_t variants = 0, phases = 0;
  if (!(job.iteration_s > 1e-5 && job.iteration_s < 1e5))
    return invalid(job, "iteration_s must be from 0.00001 to 100000");
  if (job.stages.empty()) return invalid(job, "has no stage; add phases");
  for (const StageSpec& stage : job.stages) {
    if (!(stage.length > 0) || stage.variants.empty())
      return invalid(job, "a stage needs a length over 0 and at least one variant");
    for (const VariantSpec& variant : stage.variants) {
      GPOEO_TRY_STATUS(check_variant(job, variant));
      ++variants;
      phases += variant.phases.size();
    }
  }
  if (job.stages.size() > kMaxStages || variants > kMaxVariants || phases > kMaxPhases ||
      job.lengths.size() > kMaxLengths)
    return invalid(job, fmt::format("has {} stages, {} variants, {} phases and {} lengths; at most "
                                    "{}, {}, {} and {} fit",
                                    job.stages.size(), variants, phases, job.lengths.size(),
                                    kMaxStages, kMaxVariants, kMaxPhases, kMaxLengths));
  return {};
}

// Lengths with mean 1 and weights with sum 1.
Status set_lengths(const JobSpec& job, Work& work) {
  double total = 0, mean = 0;
  for (const auto& [length, weight] : job.lengths) {
    if (!(length > 0) || !(weight > 0)) return invalid(job, "lengths and weights must be over 0");
    total += weight;
    mean += length * weight;
  }
  work.length_count = static_cast<int>(job.lengths.size());
  for (std::size_t i = 0; i < job.lengths.size(); ++i) {
    work.length_scale[i] = job.lengths[i].first * total / mean;
    work.length_weight[i] = job.lengths[i].second / total;
  }
  return {};
}

// Mean over the iterations of a stage of any quantity of a phase.
template <typename Value>
double stage_sum(const Work& work, int stage_index, Value value) {
  const Stage& stage = work.stages[at(stage_index)];
  double sum = 0;
  for (int v = stage.first_variant; v < stage.first_variant + stage.variant_count; ++v) {
    const Variant& variant = work.variants[at(v)];
    for (int p = 0; p < variant.count; ++p) {
      const bool repeated =
          p >= variant.repeat_first && p < variant.repeat_first + variant.repeat_count;
      const Phase& phase = work.phases[at(variant.first + p)];
      sum += variant.weight * (repeated ? variant.repeats : 1) / phase.every *
             value(variant.first + p);
    }
  }
  return sum;
}

double mean_power(const Work& work, int stage, int pair) {
  const double energy = stage_sum(work, stage, [&](int phase) {
    const PhasePoint& point = work.point(phase, pair);
    return point.duration_s * static_cast<double>(point.power_w);
  });
  return energy / stage_sum(work, stage, [&](int p) { return work.point(p, pair).duration_s; });
}

template <typename Visit>
void for_phases(const Work& work, int stage_index, Visit visit) {
  const Stage& stage = work.stages[at(stage_index)];
  for (int v = stage.first_variant; v < stage.first_variant + stage.variant_count; ++v) {
    const Variant& variant = work.variants[at(v)];
    for (int p = variant.first; p < variant.first + variant.count; ++p) visit(p);
  }
}

void set_power_limits(Work& work, const DeviceModel& device, int stage) {
  for (int pair = 0; pair < device.pair_count(); ++pair) {
    float peak = 0;
    for_phases(work, stage, [&](int p) { peak = std::max(peak, work.point(p, pair).power_w); });
    work.mean_power_w[at(stage)][at(pair)] = static_cast<float>(mean_power(work, stage, pair));
    work.peak_power_w[at(stage)][at(pair)] = peak;
  }
}

void add_phases(const VariantSpec& spec, Work& work, int& function_id) {
  for (const PhaseSpec& from : spec.phases) {
    Phase& phase = work.phases[at(work.phase_count++)];
    set_text(phase.name, from.name);
    phase.kind = from.kind;
    phase.every = from.every;
    phase.launches = from.launches;
    phase.function_id = function_id;
    function_id += from.launches;
  }
}

Status add_variant(const JobSpec& job, const StageSpec& stage, const VariantSpec& spec,
                   double weight, const DeviceModel& device, Work& work, int& function_id) {
  const auto count = static_cast<int>(spec.phases.size());
  if ((work.phase_count + count) * work.pair_count > kMaxPoints)
    return invalid(job,
                   fmt::format("has too many phases for the {} clock pairs of '{}'; at most "
                               "{} fit",
                               work.pair_count, device.key.data(), kMaxPoints / work.pair_count));
  const int first = work.phase_count;
  work.variants[at(work.variant_count++)] = {
      weight, first, count, spec.repeat_first, spec.repeat_count, spec.repeats, 0};
  add_phases(spec, work, function_id);
  double share = 0;
  for (int p = 0; p < count; ++p)
    if (spec.phases[at(p)].every == 1) share += spec.phases[at(p)].share * times_run(spec, p);
  const VariantShape shape{spec, job.iteration_s * stage.length * spec.length, share};
  const auto points =
      std::span(work.points).subspan(at(first * work.pair_count), at(count * work.pair_count));
  if (stage.measured)
    fill_measured(shape, *stage.measured, device, points);
  else
    fill_analytic(shape, device, points);
  return {};
}

}  // namespace

Result<std::unique_ptr<Work>> compile(const JobSpec& job, const DeviceModel& device) {
  GPOEO_TRY_STATUS(check(job));
  auto work = std::make_unique<Work>();
  set_text(work->name, job.name);
  work->pair_count = device.pair_count();
  work->stage_count = static_cast<int>(job.stages.size());
  work->loop_stages = job.loop_stages ? 1 : 0;
  GPOEO_TRY_STATUS(set_lengths(job, *work));
  work->jitter_cv = job.jitter_cv;
  work->drift_sigma = job.drift_sigma;
  work->drift_tau_s = job.drift_tau_s;
  work->power_drift_sigma = job.power_drift_sigma;
  work->memory_bytes = std::min(job.memory_bytes, device.memory_bytes / kMaxJobs);
  int function_id = 1;
  for (int s = 0; s < work->stage_count; ++s) {
    const StageSpec& stage = job.stages[at(s)];
    double weights = 0;
    for (const VariantSpec& variant : stage.variants) weights += variant.weight;
    work->stages[at(s)] = {stage.iterations, work->variant_count,
                           static_cast<int>(stage.variants.size())};
    work->cap_included[at(s)] = stage.measured ? 1 : 0;
    for (const VariantSpec& variant : stage.variants)
      GPOEO_TRY_STATUS(
          add_variant(job, stage, variant, variant.weight / weights, device, *work, function_id));
    set_power_limits(*work, device, s);
    set_reference(*work, device, s);
  }
  return work;
}

}  // namespace gpoeo::twin
