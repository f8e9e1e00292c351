// SPDX-License-Identifier: Apache-2.0
// The card as its users see it: what a clock write changes, how power is capped, how it warms up.
#include "twin/card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "twin/testing/fixtures.h"

namespace gpoeo::twin {
namespace {

using testing::Bench;
using testing::compute_job;
using testing::quiet_device;

// Iterations a second over the next `seconds`.
double speed(Bench& bench, double seconds = 20) {
  const auto before = bench.truth().jobs.back().iterations;
  bench.pass(seconds);
  return static_cast<double>(bench.truth().jobs.back().iterations - before) / seconds;
}

double mean_power(Bench& bench, double seconds = 20) {
  const double before = bench.truth().energy.value();
  bench.pass(seconds);
  return (bench.truth().energy.value() - before) / seconds;
}

TEST(Card, IdlesAtIdleClockAndIdlePower) {
  Bench bench(quiet_device("h200"));
  EXPECT_NEAR(mean_power(bench), 78, 0.5);
  EXPECT_EQ(to_mhz(*bench.front().sm_clock()), 345);
  EXPECT_TRUE(bench.front().event_reasons()->has(gpu::EventReasons::kGpuIdle));
}

TEST(Card, RunsALoadedCardAtTheDefaultClockAndFallsBackAfterIt) {
  Bench bench(quiet_device("h200"));
  const JobHandle job = bench.attach(compute_job());
  bench.pass(1);
  EXPECT_EQ(to_mhz(*bench.front().sm_clock()), 1980);
  EXPECT_EQ(bench.front().event_reasons()->bits, 0U);
  ASSERT_TRUE(bench.twin.detach(0, job).has_value());
  bench.pass(0.5);
  EXPECT_EQ(to_mhz(*bench.front().sm_clock()), 1980) << "clocks stay up for the idle delay";
  bench.pass(1);
  EXPECT_EQ(to_mhz(*bench.front().sm_clock()), 345);
}

TEST(Card, LockMovesClockSpeedPowerAndEnergyRate) {
  Bench bench(quiet_device("h200"));
  bench.attach(compute_job());
  bench.pass(60);
  const double fast = speed(bench), hot = mean_power(bench);
  bench.lock_sm(990);
  bench.pass(60);
  EXPECT_EQ(to_mhz(*bench.front().sm_clock()), 990);
  EXPECT_NEAR(speed(bench) / fast, 0.5, 0.01);
  EXPECT_LT(mean_power(bench), 0.7 * hot);
  ASSERT_TRUE(bench.front().reset_sm_clocks().has_value());
  bench.pass(60);
  EXPECT_NEAR(speed(bench), fast, 0.01 * fast);
}

TEST(Card, ClockTakesLatencyAndSettlingToMove) {
  DeviceModel model = quiet_device("h200");
  model.clock_latency_ns = 20'000'000;
  model.clock_settle_ns = 10'000'000;
  Bench bench(model);
  bench.attach(compute_job());
  bench.pass(1);
  bench.lock_sm(990);
  bench.pass(0.019);
  EXPECT_EQ(to_mhz(*bench.front().sm_clock()), 1980);
  bench.pass(0.002);
  const double half = to_mhz(*bench.front().sm_clock());
  EXPECT_GT(half, 990);
  EXPECT_LT(half, 1980);
  bench.pass(0.010);
  EXPECT_EQ(to_mhz(*bench.front().sm_clock()), 990);
}

TEST(Card, LockIsAnUpperBoundSoThatIdleStillClocksDown) {
  Bench bench(quiet_device("h200"));
  bench.lock_sm(990);
  bench.pass(2);
  EXPECT_EQ(to_mhz(*bench.front().sm_clock()), 345);
}

TEST(Card, LockedLowerBoundHoldsWhenIdle) {
  Bench bench(quiet_device("h200"));
  ASSERT_TRUE(bench.front().lock_sm_clocks({megahertz(990), megahertz(1200)}).has_value());
  bench.pass(2);
  EXPECT_EQ(to_mhz(*bench.front().sm_clock()), 990);
}

TEST(Card, LockRoundsIntoTheTableAndReadsBack) {
  Bench bench(quiet_device("h200"));
  ASSERT_TRUE(bench.front().lock_sm_clocks({megahertz(350), megahertz(1000)}).has_value());
  const Locks locks = testing::expect_ok(bench.front().read_locks());
  ASSERT_TRUE(locks.sm.has_value());
  EXPECT_EQ(to_mhz(locks.sm->min), 360);
  EXPECT_EQ(to_mhz(locks.sm->max), 990);
  EXPECT_FALSE(locks.memory.has_value());
}

TEST(Card, RefusesRangesWithoutAClock) {
  Bench bench(quiet_device("h200"));
  for (const auto& [low, high] : {std::pair{1000.0, 900.0}, {100.0, 200.0}, {3000.0, 4000.0}}) {
    const Status refused = bench.front().lock_sm_clocks({megahertz(low), megahertz(high)});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind, ErrorKind::kInvalid);
  }
  EXPECT_FALSE(bench.front().read_locks()->sm.has_value());
}

TEST(Card, MemoryLockSlowsMemoryBoundWorkAndSavesPower) {
  Bench bench(quiet_device("rtx3080ti"));
  JobSpec job = compute_job();
  job.stages[0].variants[0].phases[0].response.compute = 0.2;
  job.stages[0].variants[0].phases[0].response.memory = 1.0;
  job.stages[0].variants[0].phases[0].response.memory_activity = 0.9;
  bench.attach(job);
  bench.pass(60);
  const double fast = speed(bench), hot = mean_power(bench);
  ASSERT_TRUE(bench.front().lock_memory_clocks({megahertz(405), megahertz(5001)}).has_value());
  bench.pass(60);
  EXPECT_EQ(to_mhz(*bench.front().memory_clock()), 5001);
  EXPECT_NEAR(fast / speed(bench), 9501.0 / 5001.0, 0.03);
  EXPECT_LT(mean_power(bench), hot - 25);
  ASSERT_TRUE(bench.front().reset_memory_clocks().has_value());
  bench.pass(60);
  EXPECT_EQ(to_mhz(*bench.front().memory_clock()), 9501);
}

TEST(Governor, HoldsThePowerLimitAndSaysSo) {
  Bench bench(quiet_device("h200"));
  bench.attach(compute_job(0.1, 0.9));
  bench.pass(60);
  const double fast = speed(bench), hot = mean_power(bench);
  ASSERT_GT(hot, 500);
  ASSERT_TRUE(bench.front().set_power_limit(Watts(400)).has_value());
  bench.pass(60);
  EXPECT_NEAR(mean_power(bench), 400, 12);
  EXPECT_LT(to_mhz(*bench.front().sm_clock()), 1980);
  EXPECT_TRUE(bench.front().event_reasons()->has(gpu::EventReasons::kSwPowerCap));
  EXPECT_LT(speed(bench), 0.95 * fast);
  ASSERT_TRUE(bench.front().set_power_limit(Watts(700)).has_value());
  bench.pass(5);
  EXPECT_FALSE(bench.front().event_reasons()->has(gpu::EventReasons::kSwPowerCap));
  EXPECT_EQ(to_mhz(*bench.front().sm_clock()), 1980);
}

TEST(Governor, CapsAJobThatWantsMoreThanTheDefaultLimit) {
  Bench bench(quiet_device("h200"));
  bench.attach(compute_job(0.1, 1.3));
  bench.pass(60);
  EXPECT_NEAR(mean_power(bench), 700, 15);
  EXPECT_TRUE(bench.front().event_reasons()->has(gpu::EventReasons::kSwPowerCap));
}

TEST(Governor, LimitOutsideTheDevicesRangeIsRefused) {
  Bench bench(quiet_device("h200"));
  EXPECT_EQ(bench.front().set_power_limit(Watts(100)).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(bench.front().set_power_limit(Watts(701)).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(bench.front().power_limit()->value(), 700);
}

TEST(Thermal, WarmsUpTowardsBalanceAndLeaksMoreWhenHot) {
  DeviceModel model = quiet_device("h200");
  Bench bench(model);
  bench.attach(compute_job());
  bench.pass(0.1);
  const double cold = bench.truth().temperature.value();
  const double cold_w = bench.truth().power.value();
  bench.pass(20 * model.thermal_tau_s);
  const double hot_w = bench.truth().power.value();
  EXPECT_NEAR(bench.truth().temperature.value(), model.ambient_c + model.thermal_k_per_w * hot_w,
              0.1);
  EXPECT_GT(bench.truth().temperature.value(), cold + 5);
  EXPECT_NEAR(hot_w - cold_w, model.leakage_w_per_k * (bench.truth().temperature.value() - cold),
              0.5);
}

TEST(Jobs, ShareTheCardEqually) {
  Bench bench(quiet_device("h200"));
  bench.attach(compute_job());
  bench.pass(10);
  const double alone = speed(bench);
  bench.attach(compute_job());
  EXPECT_NEAR(speed(bench), alone / 2, 0.01 * alone);
  const auto jobs = bench.truth().jobs;
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_NEAR(jobs[0].energy_j + jobs[1].energy_j, bench.truth().energy.value(),
              0.01 * bench.truth().energy.value());
}

TEST(Jobs, FifthIsRefused) {
  Bench bench(quiet_device("h200"));
  const auto work = testing::expect_ok(compile(compute_job(), bench.twin.device(0)));
  for (int i = 0; i < kMaxJobs; ++i) ASSERT_TRUE(bench.twin.attach(0, *work).has_value());
  const auto fifth = bench.twin.attach(0, *work);
  ASSERT_FALSE(fifth.has_value());
  EXPECT_EQ(fifth.error().kind, ErrorKind::kBusy);
}

TEST(Jobs, StopAfterTheirIterations) {
  Bench bench(quiet_device("h200"));
  JobOptions options;
  options.iterations = 25;
  const JobHandle job = bench.attach(compute_job(0.1), options);
  bench.pass(10);
  const auto progress = testing::expect_ok(bench.twin.progress(0, job));
  EXPECT_EQ(progress.state, JobEnd::kDone);
  EXPECT_EQ(progress.iterations, 25);
  const auto ends = testing::expect_ok(bench.twin.iteration_ends(0, job, 0));
  ASSERT_EQ(ends.size(), 25U);
  EXPECT_NEAR(to_seconds(ends[24].time - ends[0].time).value(), 2.4, 1e-6);
  EXPECT_TRUE(bench.front().event_reasons()->has(gpu::EventReasons::kGpuIdle));
}

TEST(Jobs, ReferenceIsWhatTheSameIterationsCostAtDefaultClocks) {
  JobSpec job = compute_job(0.1);
  job.jitter_cv = 0.05;
  JobOptions options;
  options.iterations = 300;
  options.seed = 7;
  Bench base(quiet_device("h200")), slow(quiet_device("h200"));
  slow.lock_sm(990);
  slow.pass(1);
  base.pass(1);
  base.attach(job, options);
  slow.attach(job, options);
  base.pass(100);
  slow.pass(100);
  const JobTruth a = base.truth().jobs.back(), b = slow.truth().jobs.back();
  ASSERT_EQ(a.end, JobEnd::kDone);
  ASSERT_EQ(b.end, JobEnd::kDone);
  EXPECT_NEAR(a.reference_s, static_cast<double>(a.end_ns - a.start_ns) * 1e-9, 1e-5);
  EXPECT_DOUBLE_EQ(a.reference_s, b.reference_s);
  EXPECT_NEAR(static_cast<double>(b.end_ns - b.start_ns) * 1e-9, 2 * b.reference_s, 1e-4);
  EXPECT_NEAR(a.energy_j / a.reference_j, 1, 0.03);  // it started cold
}

TEST(Determinism, SameSeedAndCommandsGiveTheSameBytesHoweverOftenAsked) {
  const auto run = [](bool often, std::uint64_t seed) {
    Bench bench(testing::device("h200"), seed);
    JobSpec job = compute_job(0.07);
    job.jitter_cv = 0.02;
    job.drift_sigma = 0.003;
    bench.attach(job);
    for (int i = 0; i < 40; ++i) {
      if (often)
        for (int k = 0; k < 10; ++k) {
          bench.pass(0.05);
          EXPECT_TRUE(bench.front().power_instant().has_value());
        }
      else
        bench.pass(0.5);
      if (i == 20) bench.lock_sm(1200);
    }
    std::string bytes(sizeof(CardState), '\0');
    EXPECT_TRUE(bench.twin
                    .visit(0,
                           [&](Card& card) -> Status {
                             std::memcpy(bytes.data(), &card.state, bytes.size());
                             return {};
                           })
                    .has_value());
    return bytes;
  };
  EXPECT_TRUE(run(false, 1) == run(true, 1));
  EXPECT_FALSE(run(false, 1) == run(false, 2));
}

TEST(Faults, ChosenWriteFailsOnceAndChangesNothing) {
  Bench bench(quiet_device("h200"));
  ASSERT_TRUE(bench.front().inject_write_failure(2, ErrorKind::kNoPermission).has_value());
  EXPECT_TRUE(bench.front().reset_sm_clocks().has_value());
  const Status second = bench.front().lock_sm_clocks({megahertz(345), megahertz(990)});
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().kind, ErrorKind::kNoPermission);
  EXPECT_FALSE(bench.front().read_locks()->sm.has_value());
  EXPECT_TRUE(bench.front().lock_sm_clocks({megahertz(345), megahertz(990)}).has_value());
}

TEST(Faults, LostGpuAnswersNothing) {
  Bench bench(quiet_device("h200"));
  ASSERT_TRUE(bench.front().set_lost(true).has_value());
  EXPECT_EQ(bench.front().power_instant().error().kind, ErrorKind::kDeviceLost);
  EXPECT_EQ(bench.front().reset_sm_clocks().error().kind, ErrorKind::kDeviceLost);
  ASSERT_TRUE(bench.front().set_lost(false).has_value());
  EXPECT_TRUE(bench.front().power_instant().has_value());
}

TEST(Support, MissingAndDeniedFeaturesStayApart) {
  DeviceModel model = quiet_device("a100");
  model.controls[static_cast<std::size_t>(gpu::Control::kSmClocks)] =
      static_cast<std::uint8_t>(gpu::Support::kNoPermission);
  Bench bench(model);
  EXPECT_EQ(bench.front().gpm_snapshot().error().kind, ErrorKind::kNotSupported);
  EXPECT_EQ(bench.front().reset_sm_clocks().error().kind, ErrorKind::kNoPermission);
  EXPECT_TRUE(bench.front().power_instant().has_value());
}

}  // namespace
}  // namespace gpoeo::twin
