// SPDX-License-Identifier: Apache-2.0
// Jobs: what their options do to the sequence of iterations, and how they compile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "response/response_table.h"
#include "twin/launch_schedule.h"
#include "twin/testing/fixtures.h"

namespace gpoeo::twin {
namespace {

using testing::Bench;
using testing::compute_job;
using testing::expect_ok;
using ::testing::HasSubstr;
using testing::quiet_device;

std::vector<double> durations(const JobSpec& job, int iterations, std::uint64_t seed = 1) {
  Bench bench(quiet_device("h200"));
  JobOptions options;
  options.iterations = iterations;
  options.seed = seed;
  Instant last = bench.clock.now();
  const JobHandle handle = bench.attach(job, options);
  bench.pass(job.iteration_s * iterations * 20);
  std::vector<double> result;
  for (const IterationEnd& end : expect_ok(bench.twin.iteration_ends(0, handle, 0))) {
    result.push_back(to_seconds(end.time - last).value());
    last = end.time;
  }
  EXPECT_EQ(result.size(), static_cast<std::size_t>(iterations));
  return result;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

double cv(const std::vector<double>& values) {
  double squares = 0;
  const double m = mean(values);
  for (const double v : values) squares += (v - m) * (v - m);
  return std::sqrt(squares / static_cast<double>(values.size())) / m;
}

TEST(JobOptionsTest, JitterHasItsCvAndLeavesTheMean) {
  JobSpec job = compute_job(0.1);
  job.jitter_cv = 0.05;
  const auto times = durations(job, 4000);
  EXPECT_NEAR(mean(times), 0.1, 0.0005);
  EXPECT_NEAR(cv(times), 0.05, 0.003);
}

TEST(JobOptionsTest, DriftIsSlow) {
  JobSpec job = compute_job(0.1);
  job.drift_sigma = 0.02;
  job.drift_tau_s = 60;
  const auto times = durations(job, 4000);
  double steps = 0;
  for (std::size_t i = 1; i < times.size(); ++i)
    steps += std::pow((times[i] - times[i - 1]) / 0.1, 2);
  EXPECT_LT(std::sqrt(steps / 4000), 0.003) << "from one iteration to the next it hardly moves";
  EXPECT_GT(cv(times), 0.008);
}

TEST(JobOptionsTest, AccumulationRepeatsMicroSteps) {
  JobSpec job = compute_job(0.9);
  VariantSpec& variant = job.stages[0].variants[0];
  variant.phases.push_back(variant.phases[0]);
  variant.phases[1].name = "update";
  variant.repeat_first = 0;
  variant.repeat_count = 1;
  variant.repeats = 8;
  EXPECT_NEAR(mean(durations(job, 20)), 0.9, 1e-6);
  const auto compiled = expect_ok(compile(job, quiet_device("h200")));
  std::vector<Launch> launches;
  launches_of_iteration(*compiled, 0, 0, instant_from_ns(0), instant_from_ns(900'000'000),
                        launches);
  EXPECT_EQ(launches.size(), 9U);
  std::multiset<std::uint64_t> ids;
  for (const Launch& launch : launches) ids.insert(launch.function_id);
  EXPECT_EQ(ids.count(launches[0].function_id), 8U);
  EXPECT_NEAR(to_seconds(launches[1].time - launches[0].time).value(), 0.1, 1e-6);
}

TEST(JobOptionsTest, ValidationAndCheckpointsComeEverySoOften) {
  JobSpec job = compute_job(0.1);
  PhaseSpec checkpoint;
  checkpoint.name = "checkpoint";
  checkpoint.kind = PhaseKind::kHost;
  checkpoint.share = 5;  // iterations long
  checkpoint.every = 10;
  job.stages[0].variants[0].phases.push_back(checkpoint);
  const auto times = durations(job, 30);
  EXPECT_NEAR(times[8], 0.1, 1e-6);
  EXPECT_NEAR(times[9], 0.6, 1e-6);
  EXPECT_NEAR(times[10], 0.1, 1e-6);
  EXPECT_NEAR(times[29], 0.6, 1e-6);
}

TEST(JobOptionsTest, LengthsVaryKernelsAroundTheMean) {
  JobSpec job = compute_job(0.1);
  job.lengths = {{1, 1}, {3, 1}};
  const auto times = durations(job, 2000);
  EXPECT_NEAR(mean(times), 0.1, 0.003);
  for (const double t : times) EXPECT_TRUE(std::abs(t - 0.05) < 1e-6 || std::abs(t - 0.15) < 1e-6);
}

TEST(JobOptionsTest, MixDrawsVariantsByWeight) {
  JobSpec job = compute_job(0.1);
  auto& variants = job.stages[0].variants;
  variants.push_back(variants[0]);
  variants[1].length = 4;
  variants[0].weight = 3;
  int longer = 0;
  for (const double t : durations(job, 2000)) longer += t > 0.2 ? 1 : 0;
  EXPECT_NEAR(longer / 2000.0, 0.25, 0.03);
}

TEST(JobOptionsTest, ShiftsToAnotherStage) {
  JobSpec job = compute_job(0.1);
  job.stages.push_back(job.stages[0]);
  job.stages[0].iterations = 10;
  job.stages[1].length = 3;
  const auto times = durations(job, 20);
  EXPECT_NEAR(times[9], 0.1, 1e-6);
  EXPECT_NEAR(times[10], 0.3, 1e-6);
  EXPECT_NEAR(times[19], 0.3, 1e-6);
  job.stages[1].iterations = 5;
  job.loop_stages = true;
  EXPECT_NEAR(durations(job, 20)[15], 0.1, 1e-6);
}

TEST(Launches, CountIterationsThatFitIntoATime) {
  JobSpec job = compute_job(0.1);
  const DeviceModel model = quiet_device("h200");
  EXPECT_EQ(iterations_in(*expect_ok(compile(job, model)), Seconds(10.01)), 100);
  job.stages.push_back(job.stages[0]);
  job.stages[0].iterations = 10;
  job.stages[1].length = 3;
  EXPECT_EQ(iterations_in(*expect_ok(compile(job, model)), Seconds(4.01)), 20);
  EXPECT_EQ(iterations_in(*expect_ok(compile(job, model)), Seconds(0.001)), 1);
}

TEST(Compile, MeasuredPhasesShapePowerButNotItsMean) {
  const DeviceModel model = quiet_device("a100");
  JobSpec job = testing::steady_job("a100", "lammps");
  const auto compiled = expect_ok(compile(job, model));
  const int pair = model.pair(0, model.default_sm);
  EXPECT_LT(compiled->point(0, pair).power_w, 0.8 * compiled->point(2, pair).power_w);
  double time = 0, energy = 0;
  for (int p = 0; p < compiled->phase_count; ++p) {
    time += compiled->point(p, pair).duration_s;
    energy += compiled->point(p, pair).duration_s * compiled->point(p, pair).power_w;
  }
  EXPECT_NEAR(time, job.iteration_s, 1e-9);
  EXPECT_NEAR(energy / time, job.stages[0].measured->default_power_w(), 1e-3);
}

TEST(Compile, CarriesATableOnBelowItsLowestClock) {
  const DeviceModel model = quiet_device("a100");
  const auto compiled = expect_ok(compile(testing::steady_job("a100", "dgemm"), model));
  for (int sm = 1; sm < model.sm_clock_count; ++sm) {
    EXPECT_LE(compiled->point(1, sm).duration_s, compiled->point(1, sm - 1).duration_s) << sm;
    EXPECT_GE(compiled->mean_power_w[0][static_cast<std::size_t>(sm)],
              compiled->mean_power_w[0][static_cast<std::size_t>(sm - 1)] * 0.995F)
        << sm;
  }
  // dgemm is bound by the SMs: from 510 down to 210 MHz it takes about 510 / 210 as long.
  EXPECT_NEAR(compiled->point(1, 0).duration_s / compiled->point(1, 20).duration_s, 510.0 / 210,
              0.15);
}

TEST(Compile, AnalyticTimeFollowsItsFormula) {
  const DeviceModel model = quiet_device("rtx3080ti");
  JobSpec job = compute_job(1.0);
  AnalyticResponse& r = job.stages[0].variants[0].phases[0].response;
  r.compute = 0.6;
  r.memory = 0.4;
  r.fixed = 0.1;
  r.overlap = 0.5;
  const auto compiled = expect_ok(compile(job, model));
  const auto time = [&](int memory, int sm) {
    const double c = 0.6 * 1995 / model.sm_mhz[static_cast<std::size_t>(sm)];
    const double m = 0.4 * 9501 / model.memory_mhz[static_cast<std::size_t>(memory)];
    return 0.5 * std::max(c, m) + 0.5 * (c + m) + 0.1;
  };
  for (const int memory : {0, 2, 4})
    for (const int sm : {0, 10, 60})
      EXPECT_NEAR(compiled->point(0, model.pair(memory, sm)).duration_s,
                  time(memory, sm) / time(0, model.default_sm), 1e-9);
}

// Under the cap the governor, not a formula, decides what default clocks cost.
TEST(Compile, ReferenceOfACappedJobIsWhatTheGovernorMakesOfIt) {
  for (const char* name : {"resnet50", "mixed_lengths", "eval_checkpoint"}) {
    Bench bench(quiet_device("rtx3080ti"));
    bench.attach(testing::steady_job("rtx3080ti", name));
    bench.pass(600);
    const JobTruth before = bench.truth().jobs[0];
    bench.pass(1200);
    const JobTruth after = bench.truth().jobs[0];
    EXPECT_NEAR(static_cast<double>(after.end_ns - before.end_ns) * 1e-9 /
                    (after.reference_s - before.reference_s),
                1, 0.003)
        << name;
    EXPECT_NEAR((after.iterations_energy_j - before.iterations_energy_j) /
                    (after.reference_j - before.reference_j),
                1, 0.003)
        << name;
  }
}

TEST(Compile, RefusesWhatDoesNotFitWithAReason) {
  JobSpec job = compute_job();
  job.stages[0].variants[0].phases.assign(kMaxPhases + 1, job.stages[0].variants[0].phases[0]);
  EXPECT_THAT(compile(job, quiet_device("a100")).error().text, HasSubstr("at most"));
  job = compute_job();
  job.stages[0].variants[0].phases[0].share = 0;
  EXPECT_THAT(compile(job, quiet_device("a100")).error().text, HasSubstr("share"));
  job = compute_job();
  job.stages.clear();
  EXPECT_FALSE(compile(job, quiet_device("a100")).has_value());
}

TEST(Catalog, EveryShippedJobCompilesForEveryDevice) {
  for (const std::string& name : expect_ok(device_names())) {
    const DeviceModel model = quiet_device(name);
    const auto jobs = expect_ok(jobs_for(name));
    EXPECT_GT(jobs.size(), 5U);
    for (const JobEntry& job : jobs) {
      const auto compiled = compile(expect_ok(find_job(name, job.name)), model);
      ASSERT_TRUE(compiled.has_value()) << compiled.error().text;
    }
  }
}

TEST(Catalog, FindsByNameWhateverTheCaseAndListsWhatThereIs) {
  EXPECT_EQ(expect_ok(find_job("a100", "lstm")).name, "LSTM");
  const auto missing = find_job("a100", "nosuch");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(missing.error().text, HasSubstr("LAMMPS"));
}

}  // namespace
}  // namespace gpoeo::twin
