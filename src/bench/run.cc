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

twin::DeviceModel with_noise(const twin::DeviceModel& device, double scale) {
  twin::DeviceModel noisy = device;
  noisy.power_noise_cv *= scale;
  noisy.power_drift_sigma *= scale;
  return noisy;
}

twin::JobSpec job_of(const Subject& subject, const RunOptions& options) {
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

void judge_decisions(const std::vector<TimedDecision>& decisions, bool stopped, Instant started,
                     const Truth& truth, RunResult& result) {
  for (const TimedDecision& d : decisions) {
    const double at_s = to_seconds(d.at - started).value();
    result.steps.push_back({.at_s = at_s,
                            .purpose = d.decision.purpose,
                            .setting = d.decision.setting,
                            .truth = truth.at(d.decision.setting),
                            .why = d.decision.why});
    if (!is_settled(d.decision)) continue;
    if (!result.time_to_hold_s) result.time_to_hold_s = at_s;
    result.held = d.decision.setting;
  }
  if (stopped) result.held = {};
  const Response held = truth.at(result.held);
  result.steady_saving = 1 - held.energy;
  result.steady_slowdown = held.time - 1;
}

}  // namespace

double iteration_period_s(const std::string& workload, std::uint64_t seed) {
  constexpr double kGolden = 0.6180339887498949;
  const double start = static_cast<double>(hash(workload) >> 11) * 0x1.0p-53;
  double whole = 0;
  const double u = std::modf(start + kGolden * static_cast<double>(seed), &whole);
  return kShortestPeriodS * std::pow(kLongestPeriodS / kShortestPeriodS, u);
}

Result<RunResult> run_one(const Subject& subject, const twin::DeviceModel& device,
                          const Truth& truth, const policy::Policy& policy,
                          const RunOptions& options) {
  const twin::JobSpec spec = job_of(subject, options);
  VirtualClock clock;
  twin::Twin twin(clock, fmt::format("{:x}", seed_of(subject.name, options.seed, "card name")));
  twin.add_card(with_noise(device, options.noise_scale),
                seed_of(subject.name, options.seed, "card"));
  GPOEO_TRY(const auto work, twin::compile(spec, twin.device(0)));
  GPOEO_TRY_STATUS(warm_up(twin, clock, *work, seed_of(subject.name, options.seed, "before")));

  RunResult result;
  result.iteration_s = spec.iteration_s;
  result.iterations = std::max<std::int64_t>(1, std::llround(options.job_s / result.iteration_s));
  GPOEO_TRY(const auto job, twin.attach(0, *work,
                                        {.iterations = result.iterations,
                                         .seed = seed_of(subject.name, options.seed, "job")}));
  MarksProgress progress(twin, job);
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
                                 .measure_only_reason = ""};
  input.gpus.push_back({.device = card.get(), .guard = std::move(guard), .trace = {}});
  control::Controller controller(std::move(input));
  const Instant runaway = started + to_duration(Seconds(kRunaway * options.job_s + 60));
  while (clock.now() < runaway) {
    const Instant next = controller.step();
    GPOEO_TRY(const auto state, twin.progress(0, job));
    if (state.state != twin::JobEnd::kRunning) break;
    clock.advance(std::max<Duration>(next - clock.now(), kLeastStep));
  }
  const bool stopped = controller.state() == control::State::kStop;
  const report::Session session = controller.finish();
  GPOEO_TRY(const auto card_truth, twin::truth(twin, 0));
  const auto& own = card_truth.jobs.back();
  if (own.iterations < result.iterations) {
    return make_error(ErrorKind::kTimeout,
                      fmt::format("{}, seed {}: the job did not come to its end under policy {}",
                                  subject.name, options.seed, policy.name()));
  }
  result.net_saving = 1 - own.iterations_energy_j / own.reference_j;
  result.net_slowdown = static_cast<double>(own.end_ns - own.start_ns) * 1e-9 / own.reference_s - 1;
  result.clock_writes = session.clock_writes;
  result.simulated_s = to_seconds(clock.now() - started).value();
  result.notes = session.notes;
  judge_decisions(watched.decisions(), stopped, started, truth, result);
  return result;
}

}  // namespace gpoeo::bench
