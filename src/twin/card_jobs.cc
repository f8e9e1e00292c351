// SPDX-License-Identifier: Apache-2.0
#include "twin/card_jobs.h"

#include <fmt/format.h>

#include <cmath>

#include "twin/card_load.h"

namespace gpoeo::twin {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// An index drawn with the given weights (their sum is 1).
template <typename Weight>
int draw(Random& random, int count, Weight weight) {
  if (count <= 1) return 0;
  double left = next_uniform(random);
  for (int i = 0; i < count - 1; ++i) {
    left -= weight(i);
    if (left < 0) return i;
  }
  return count - 1;
}

bool runs_now(const JobSlot& job, const Phase& phase) {
  return phase.every <= 1 || (job.truth.iterations + 1) % phase.every == 0;
}

// Moves to the first phase at or after the present position that runs in this iteration; false at
// the iteration's end.
bool find_phase(JobSlot& job, const Work& work) {
  const Variant& variant = work.variants[at(job.variant)];
  while (job.phase < variant.count && !runs_now(job, work.phases[at(variant.first + job.phase)]))
    ++job.phase;
  return job.phase < variant.count;
}

void begin_iteration(JobSlot& job, const Work& work, std::int64_t t_ns) {
  const Stage& present = work.stages[at(job.stage)];
  if (present.iterations > 0 && job.stage_iteration >= present.iterations) {
    if (job.stage + 1 < work.stage_count) {
      ++job.stage;
      job.stage_iteration = 0;
    } else if (work.loop_stages) {
      job.stage = 0;
      job.stage_iteration = 0;
    }
  }
  const Stage& stage = work.stages[at(job.stage)];
  job.variant = stage.first_variant + draw(job.random, stage.variant_count, [&](int i) {
                  return work.variants[at(stage.first_variant + i)].weight;
                });
  const int length =
      draw(job.random, work.length_count, [&](int i) { return work.length_weight[at(i)]; });
  job.length_scale = work.length_count > 0 ? work.length_scale[at(length)] : 1.0;
  const double dt_s = static_cast<double>(t_ns - job.drift_ns) * 1e-9;
  job.drift_ns = t_ns;
  job.time_drift = next_drift(job.random, job.time_drift, work.drift_sigma, work.drift_tau_s, dt_s);
  job.power_drift =
      next_drift(job.random, job.power_drift, work.power_drift_sigma, work.drift_tau_s, dt_s);
  // Log-normal with mean 1: times are positive and skewed, as real ones are.
  const double sigma = work.jitter_cv;
  const double jitter =
      sigma > 0 ? std::exp(sigma * next_normal(job.random) - 0.5 * sigma * sigma) : 1.0;
  job.scale = jitter * (1.0 + job.time_drift);
  job.phase = 0;
  job.repeat = 0;
  job.pending_reference_s = 0.0;
  job.pending_reference_j = 0.0;
}

void begin_phase(JobSlot& job, const Work& work) {
  const Phase& phase = work.phases[at(work.variants[at(job.variant)].first + job.phase)];
  const double scale = job.scale * (phase.kind == PhaseKind::kKernel ? job.length_scale : 1.0);
  job.left = 1.0;
  job.pending_reference_s += scale * phase.reference_s;
  job.pending_reference_j +=
      scale * phase.reference_s * phase.reference_w * (1.0 + job.power_drift);
}

void remember(CardState& s, const JobTruth& truth) {
  s.finished[s.finished_count % kFinishedJobs] = truth;
  ++s.finished_count;
}

// One running job fewer: the others speed up, or the card goes idle after a while.
void stop_running(Card& card) {
  CardState& s = card.state;
  --s.running;
  if (s.running == 0) s.idle_due_ns = s.t_ns + card.device.idle_delay_ns;
  refresh(card);
  arm_governor(card);
}

void end_iteration(Card& card, int slot) {
  CardState& s = card.state;
  JobSlot& job = s.jobs[at(slot)];
  JobTruth& truth = job.truth;
  const auto place = static_cast<std::size_t>(truth.iterations % kIterationRing);
  card.logs[at(slot)]->end_ns[place] = s.t_ns;
  card.logs[at(slot)]->variant[place] = static_cast<std::uint8_t>(job.variant);
  ++truth.iterations;
  ++job.stage_iteration;
  truth.end_ns = s.t_ns;
  truth.energy_j = s.shared_energy_j - job.shared_at_start_j;
  truth.iterations_energy_j = truth.energy_j;
  truth.reference_s += job.pending_reference_s;
  truth.reference_j += job.pending_reference_j;
}

}  // namespace

void end_phase(Card& card, int slot) {
  CardState& s = card.state;
  JobSlot& job = s.jobs[at(slot)];
  const Work& work = *card.works[at(slot)];
  const Variant& variant = work.variants[at(job.variant)];
  const bool block_ends =
      variant.repeat_count > 0 && job.phase == variant.repeat_first + variant.repeat_count - 1;
  if (block_ends && job.repeat + 1 < variant.repeats) {
    ++job.repeat;
    job.phase = variant.repeat_first;
  } else {
    ++job.phase;
  }
  const int stage = job.stage;
  if (!find_phase(job, work)) {
    end_iteration(card, slot);
    if (job.iteration_limit > 0 && job.truth.iterations >= job.iteration_limit) {
      job.state = JobPhaseState::kDone;
      job.truth.end = JobEnd::kDone;
      stop_running(card);
      return;
    }
    begin_iteration(job, work, s.t_ns);
    find_phase(job, work);
  }
  begin_phase(job, work);
  schedule_phase(card, slot);
  refresh_load(card);
  if (job.stage != stage) arm_governor(card);
}

Result<JobHandle> attach_job(Card& card, const Work& work, const JobOptions& options) {
  CardState& s = card.state;
  int slot = 0;
  while (slot < kMaxJobs && s.jobs[at(slot)].state != JobPhaseState::kFree) ++slot;
  if (slot == kMaxJobs)
    return make_error(
        ErrorKind::kBusy,
        fmt::format("cannot attach job '{}': the simulated card already runs {} jobs; "
                    "wait for one to end",
                    work.name.data(), kMaxJobs));
  if (work.pair_count != card.device.pair_count())
    return make_error(ErrorKind::kInvalid,
                      fmt::format("job '{}' was compiled for another device than '{}'; compile it "
                                  "for this one",
                                  work.name.data(), card.device.key.data()));
  integrate(card, s.horizon_ns);
  *card.works[at(slot)] = work;
  JobSlot& job = s.jobs[at(slot)];
  job = JobSlot{};
  job.state = JobPhaseState::kRunning;
  job.process_start = options.process_start;
  job.iteration_limit = options.iterations;
  job.random = make_random(options.seed);
  job.drift_ns = s.t_ns;
  // Drifts begin anywhere in their spread, as a job does.
  job.time_drift = work.drift_sigma * next_normal(job.random);
  job.power_drift = work.power_drift_sigma * next_normal(job.random);
  job.shared_at_start_j = s.shared_energy_j;
  job.truth.generation = ++s.next_generation;
  job.truth.pid = options.pid;
  job.truth.name = work.name;
  job.truth.start_ns = job.truth.end_ns = s.t_ns;
  ++s.running;
  s.idle = 0;
  s.idle_due_ns = kNever;
  begin_iteration(job, work, s.t_ns);
  find_phase(job, work);
  begin_phase(job, work);
  refresh(card);
  arm_governor(card);
  return JobHandle{slot, job.truth.generation};
}

namespace {

template <typename State>
auto* find_slot(State& s, JobHandle handle) {
  using Slot = decltype(&s.jobs[0]);
  if (handle.slot < 0 || handle.slot >= kMaxJobs) return Slot{};
  auto& job = s.jobs[at(handle.slot)];
  if (job.state == JobPhaseState::kFree || job.truth.generation != handle.generation) return Slot{};
  return &job;
}

std::unexpected<Error> no_such_job() {
  return make_error(ErrorKind::kNotFound,
                    "no such job on this simulated card: it was detached or its process died");
}

}  // namespace

Status detach_job(Card& card, JobHandle handle, JobEnd why) {
  CardState& s = card.state;
  JobSlot* job = find_slot(s, handle);
  if (!job) return no_such_job();
  integrate(card, s.horizon_ns);
  const bool was_running = job->state == JobPhaseState::kRunning;
  if (was_running) {
    job->truth.end = why;
    job->truth.end_ns = s.t_ns;
    job->truth.energy_j = s.shared_energy_j - job->shared_at_start_j;
  }
  remember(s, job->truth);
  job->state = JobPhaseState::kFree;
  if (was_running) stop_running(card);
  return {};
}

Result<JobProgress> job_progress(const Card& card, JobHandle handle) {
  const JobSlot* job = find_slot(card.state, handle);
  if (!job) return no_such_job();
  return JobProgress{job->truth.end, job->truth.iterations};
}

Result<std::vector<IterationEnd>> iteration_ends(const Card& card, JobHandle handle,
                                                 std::int64_t first) {
  const JobSlot* job = find_slot(card.state, handle);
  if (!job) return no_such_job();
  const std::int64_t count = job->truth.iterations;
  if (first < 0 || first + kIterationRing < count)
    return make_error(
        ErrorKind::kInvalid,
        fmt::format("end of iteration {} is no longer kept, only the newest {} of {}; "
                    "ask more often",
                    first, kIterationRing, count));
  const IterationLog& log = *card.logs[at(handle.slot)];
  std::vector<IterationEnd> ends;
  for (std::int64_t i = first; i < count; ++i) {
    const auto place = static_cast<std::size_t>(i % kIterationRing);
    ends.push_back({instant_from_ns(log.end_ns[place]), log.variant[place]});
  }
  return ends;
}

}  // namespace gpoeo::twin
