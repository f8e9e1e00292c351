// SPDX-License-Identifier: Apache-2.0
#include "bench/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/marks_progress.h"
#include "bench/watched_policy.h"
#include "control/controller.h"
#include "twin/compile.h"
#include "twin/judge.h"
#include "twin/random.h"
#include "twin/twin.h"
#include "twin/twin_device.h"

namespace gpoeo::bench {
namespace {

constexpr double kShortestPeriodS = 0.05, kLongestPeriodS = 3.0;
// A run that takes this many times as long as at default clocks is ended: something hangs.
constexpr double kRunaway = 5;
constexpr Duration kLeastStep = std::chrono::milliseconds(1);

// FNV-1a.
std::uint64_t hash(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325ULL;
  for (const unsigned char c : text) h = (h ^ c) * 0x100000001b3ULL;
  return h;
}

// A seed of its own for each use, the same for every policy.
std::uint64_t seed_of(const std::string& workload, std::uint64_t seed, std::string_view use) {
  twin::Random random = twin::make_random(hash(workload) ^ (hash(use) + seed * 0x9E3779B97F4A7C15));
  return twin::next_u64(random);
}

twin::DeviceModel with_sensors(const twin::DeviceModel& device, const twin::JobSpec& job,
                               const RunOptions& options) {
  twin::DeviceModel d = device;
  d.power_noise_cv *= options.noise_scale;
  d.power_drift_sigma *= options.noise_scale;
  if (options.sensors == Sensors::kFine) {
    constexpr std::int64_t kPeriodNs = 20'000'000;
    d.power_samples.period_ns = d.power_samples.window_ns = kPeriodNs;
    d.power_samples.jitter_us = 0;
  }
  if (options.counters) {
    // Whatever the card has: on one without GPM they come from the twin's job.
    d.readings[static_cast<std::size_t>(gpu::Reading::kCounters)] =
        static_cast<std::uint8_t>(gpu::Support::kYes);
    const auto& measured = job.stages.front().measured;
    for (std::size_t i = 0; i < d.activities.size(); ++i) {
      d.activities[i] = !measured || measured->at({}).counters.values[i] ? 1 : 0;
    }
  }
  return d;
}

twin::JobSpec job_of(const std::vector<Leg>& legs, const RunOptions& options) {
  const Subject& subject = *legs.front().subject;
  twin::JobSpec job = subject.job;
  if (!subject.own_period) job.iteration_s = iteration_period_s(subject.name, options.seed);
  if (!subject.own_noise) {
    job.jitter_cv = options.jitter_cv;
    job.drift_sigma = job.power_drift_sigma = options.drift_sigma;
  }
  for (double* noise : {&job.jitter_cv, &job.drift_sigma, &job.power_drift_sigma}) {
    *noise *= options.noise_scale;
  }
  return job;
}

// Puts the legs one behind the other; how many iterations each has.
Result<std::vector<std::int64_t>> add_legs(const std::vector<Leg>& legs, const RunOptions& options,
                                           twin::JobSpec& job) {
  const double leg_s = options.job_s / static_cast<double>(legs.size());
  std::vector<std::int64_t> iterations;
  std::vector<twin::StageSpec> stages;
  for (const Leg& leg : legs) {
    const twin::JobSpec& other = leg.subject->job;
    if (legs.size() > 1 && (other.stages.size() != 1 || !other.stages.front().measured)) {
      return make_error(
          ErrorKind::kInvalid,
          fmt::format("{}: only measured jobs can change into one another", leg.subject->name));
    }
    double length = 1;
    if (!leg.subject->own_period) {
      length = iteration_period_s(leg.subject->name, options.seed) / job.iteration_s;
    }
    iterations.push_back(
        std::max<std::int64_t>(1, std::llround(leg_s / (job.iteration_s * length))));
    twin::StageSpec stage = other.stages.front();
    stage.length = length;
    stage.iterations = iterations.back();
    stages.push_back(std::move(stage));
  }
  if (legs.size() > 1) job.stages = std::move(stages);
  return iterations;
}

// A card on which the same work ran before, so that its heat favours nobody: the reference that a
// run is compared with is at thermal balance.
Status warm_up(twin::Twin& twin, VirtualClock& clock, const twin::Work& work, std::uint64_t seed) {
  GPOEO_TRY(const auto job, twin.attach(0, work, {.seed = seed}));
  clock.advance(to_duration(Seconds(5 * twin.device(0).thermal_tau_s)));
  return twin.detach(0, job);
}

bool is_settled(const policy::Decision& d) {
  return d.purpose == policy::Purpose::kHold || d.purpose == policy::Purpose::kLeave;
}

// Of a leg that began at `began_s`: when something was first held that was chosen for it.
std::optional<double> resettled(const std::vector<Step>& steps, double began_s, double ended_s) {
  bool noticed = false;
  for (const Step& step : steps) {
    if (step.at_s < began_s || step.at_s > ended_s) continue;
    noticed = noticed || step.new_work;
    const bool settled =
        step.purpose == policy::Purpose::kHold || step.purpose == policy::Purpose::kLeave;
    if (noticed && settled) return step.at_s - began_s;
  }
  return std::nullopt;
}

// `leg_ends`: seconds since the start, of all legs but the last.
void judge_decisions(const std::vector<TimedDecision>& decisions, bool stopped, Instant started,
                     const std::vector<Leg>& legs, const std::vector<double>& leg_ends,
                     RunResult& result) {
  for (const TimedDecision& d : decisions) {
    const double at_s = to_seconds(d.at - started).value();
    result.steps.push_back({.at_s = at_s,
                            .purpose = d.decision.purpose,
                            .setting = d.decision.setting,
                            .new_work = d.new_work,
                            .why = d.decision.why});
    if (!is_settled(d.decision)) continue;
    if (!result.time_to_hold_s) result.time_to_hold_s = at_s;
    result.held = d.decision.setting;
  }
  if (stopped) result.held = {};
  const Response held = legs.back().truth->at(result.held);
  result.steady_saving = 1 - held.energy;
  result.steady_slowdown = held.time - 1;
  for (std::size_t leg = 0; leg < leg_ends.size(); ++leg) {
    const double end = leg + 1 < leg_ends.size() ? leg_ends[leg + 1] : result.simulated_s;
    result.resettled_s.push_back(resettled(result.steps, leg_ends[leg], end));
  }
}

}  // namespace

double iteration_period_s(const std::string& workload, std::uint64_t seed) {
  constexpr double kGolden = 0.6180339887498949;
  const double start = static_cast<double>(hash(workload) >> 11) * 0x1.0p-53;
  double whole = 0;
  const double u = std::modf(start + kGolden * static_cast<double>(seed), &whole);
  return kShortestPeriodS * std::pow(kLongestPeriodS / kShortestPeriodS, u);
}

Result<RunResult> run_one(const std::vector<Leg>& legs, const twin::DeviceModel& device,
                          const policy::Policy& policy, const RunOptions& options) {
  const Subject& subject = *legs.front().subject;
  twin::JobSpec spec = job_of(legs, options);
  GPOEO_TRY(const auto iterations, add_legs(legs, options, spec));
  VirtualClock clock;
  twin::Twin twin(clock, fmt::format("{:x}", seed_of(subject.name, options.seed, "card name")));
  twin.add_card(with_sensors(device, subject.job, options),
                seed_of(subject.name, options.seed, "card"));
  GPOEO_TRY(const auto work, twin::compile(spec, twin.device(0)));
  if (options.warm_card) {
    GPOEO_TRY_STATUS(warm_up(twin, clock, *work, seed_of(subject.name, options.seed, "before")));
  }

  RunResult result;
  result.iteration_s = spec.iteration_s;
  for (const std::int64_t n : iterations) result.iterations += n;
  GPOEO_TRY(const auto job, twin.attach(0, *work,
                                        {.iterations = result.iterations,
                                         .seed = seed_of(subject.name, options.seed, "job")}));
  MarksProgress progress(twin, job, options.progress != Progress::kLaunches);
  WatchedPolicy watched(policy, clock);
  GPOEO_TRY(const auto card, twin::open_device(twin, 0, gpu::Access::kControl));
  GPOEO_TRY(const auto journal, control::Journal::open(options.state_dir));
  GPOEO_TRY(auto guard, control::Guard::acquire(*card, journal, {}));

  const Instant started = clock.now();
  control::ControllerInput input{.clock = &clock,
                                 .gpus = {},
                                 .progress = &progress,
                                 .policy = &watched,
                                 .max_slowdown = options.max_slowdown,
                                 .objective = options.objective,
                                 .cost_eta = options.cost_eta,
                                 .measure_only_reason = "",
                                 .traces_after = {}};
  if (!options.counters) input.counters.use = control::CounterUse::kNone;
  input.predict = options.predict;
  if (options.progress == Progress::kTraces) input.traces_after = Duration{};
  input.gpus.push_back({.device = card.get(), .guard = std::move(guard), .trace = {}});
  control::Controller controller(std::move(input));
  std::vector<double> leg_ends;
  std::int64_t leg_end = iterations.front();
  const Instant runaway = started + to_duration(Seconds(kRunaway * options.job_s + 60));
  while (clock.now() < runaway) {
    const Instant next = controller.step();
    GPOEO_TRY(const auto state, twin.progress(0, job));
    if (state.state != twin::JobEnd::kRunning) break;
    while (leg_ends.size() + 1 < legs.size() && state.iterations >= leg_end) {
      leg_ends.push_back(to_seconds(clock.now() - started).value());
      leg_end += iterations[leg_ends.size()];
    }
    clock.advance(std::max<Duration>(next - clock.now(), kLeastStep));
  }
  const bool stopped = controller.state() == control::State::kStop;
  result.session = controller.finish();
  GPOEO_TRY(const auto card_truth, twin::truth(twin, 0));
  const auto& own = card_truth.jobs.back();
  if (own.iterations < result.iterations) {
    return make_error(ErrorKind::kTimeout,
                      fmt::format("{}, seed {}: the job did not come to its end under policy {}",
                                  subject.name, options.seed, policy.name()));
  }
  result.net_saving = 1 - own.iterations_energy_j / own.reference_j;
  result.net_slowdown = static_cast<double>(own.end_ns - own.start_ns) * 1e-9 / own.reference_s - 1;
  result.clock_writes = result.session.clock_writes;
  result.simulated_s = to_seconds(clock.now() - started).value();
  judge_decisions(watched.decisions(), stopped, started, legs, leg_ends, result);
  return result;
}

}  // namespace gpoeo::bench
