// SPDX-License-Identifier: Apache-2.0
// What the sensors show, against the truth.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "gpu/device.h"
#include "twin/testing/fixtures.h"
#include "twin/twin_device.h"

namespace gpoeo::twin {
namespace {

using testing::Bench;
using testing::compute_job;
using testing::device;
using testing::quiet_device;

// Energy of the samples in (from, to], each standing for the time since the one before it.
double integrate(const std::vector<gpu::PowerSample>& samples) {
  double joules = 0;
  for (std::size_t i = 1; i < samples.size(); ++i)
    joules += samples[i].power.value() * to_seconds(samples[i].time - samples[i - 1].time).value();
  return joules;
}

JobSpec two_phase_job(double iteration_s) {
  JobSpec job = compute_job(iteration_s, 0.9);
  PhaseSpec host;
  host.name = "host";
  host.kind = PhaseKind::kHost;
  host.share = 0.4;
  job.stages[0].variants[0].phases.push_back(host);
  return job;
}

TEST(PowerSamples, IntegrateToTheTrueEnergyOnAnH200) {
  Bench bench(quiet_device("h200"));
  bench.attach(two_phase_job(0.217));
  bench.pass(3);
  std::vector<gpu::PowerSample> samples;
  double truth_j = 0;
  Instant last = bench.clock.now();
  for (int i = 0; i < 20; ++i) {
    const double before = bench.truth().energy.value();
    bench.pass(1);
    truth_j += bench.truth().energy.value() - before;
    const auto news = testing::expect_ok(bench.front().power_samples_since(last));
    ASSERT_FALSE(news.empty());
    samples.insert(samples.end(), news.begin(), news.end());
    last = news.back().time;
  }
  EXPECT_NEAR(integrate(samples) / truth_j, 1, 0.005);
}

TEST(PowerSamples, ComeWithTheirPeriodAndTheBufferForgets) {
  Bench bench(device("h200"));
  bench.pass(10);
  const auto all = testing::expect_ok(bench.front().power_samples_since(instant_from_ns(0)));
  EXPECT_EQ(all.size(), 119U);
  const double span = to_seconds(all.back().time - all.front().time).value();
  EXPECT_NEAR(span / 118, 0.020, 0.0005);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(),
                             [](const auto& a, const auto& b) { return a.time < b.time; }));
  EXPECT_TRUE(bench.front().power_samples_since(all.back().time)->empty());
}

TEST(PowerSamples, HaveTheNoiseOfTheDeviceFile) {
  DeviceModel model = quiet_device("h200");
  model.power_noise_cv = 0.01;
  Bench bench(model);
  bench.pass(2);
  double sum = 0, squares = 0;
  int n = 0;
  for (int k = 0; k < 50; ++k) {
    const Instant before = bench.clock.now();
    bench.pass(2);
    const auto samples = testing::expect_ok(bench.front().power_samples_since(before));
    for (const auto& sample : samples) {
      sum += sample.power.value();
      squares += sample.power.value() * sample.power.value();
      ++n;
    }
  }
  const double mean = sum / n;
  EXPECT_NEAR(mean, 78, 0.2);
  EXPECT_NEAR(std::sqrt(squares / n - mean * mean) / mean, 0.01, 0.001);
}

// An A100's sensor looks at a quarter of the time: it sees the average only of what does not move
// in step with it.
TEST(PowerSamples, OfAnA100MissThreeQuartersOfTheTime) {
  Bench bench(quiet_device("a100"));
  bench.attach(two_phase_job(0.1));  // in step with the 100 ms period
  bench.pass(5);
  const Instant from = bench.clock.now();
  const double before = bench.truth().energy.value();
  bench.pass(5);
  const double mean_w = (bench.truth().energy.value() - before) / 5;
  const auto samples = testing::expect_ok(bench.front().power_samples_since(from));
  ASSERT_GT(samples.size(), 40U);
  EXPECT_GT(std::abs(samples[20].power.value() / mean_w - 1), 0.1);
}

TEST(EnergyCounter, MovesInTicksAndShowsTheTruthThen) {
  Bench bench(device("h200"));
  bench.attach(two_phase_job(0.217));
  bench.pass(3.05);
  const double shown = testing::expect_ok(bench.front().energy_counter()).value();
  bench.pass(0.04);
  EXPECT_EQ(testing::expect_ok(bench.front().energy_counter()).value(), shown);
  bench.pass(0.01);
  const double ticked = testing::expect_ok(bench.front().energy_counter()).value();
  EXPECT_GT(ticked, shown);
  EXPECT_NEAR(ticked, bench.truth().energy.value(), 1e-6);
}

TEST(EnergyCounter, AgreesWithTruthWithinOnePercentOverThreeSeconds) {
  for (const char* name : {"h200", "a100"}) {
    Bench bench(device(name));
    bench.attach(two_phase_job(0.13));
    bench.pass(5.037);
    const double counter = testing::expect_ok(bench.front().energy_counter()).value();
    const double energy = bench.truth().energy.value();
    bench.pass(3);
    const double counted = testing::expect_ok(bench.front().energy_counter()).value() - counter;
    EXPECT_NEAR(counted / (bench.truth().energy.value() - energy), 1, 0.01) << name;
  }
}

TEST(AveragePower, LagsAChangeByASecond) {
  Bench bench(quiet_device("h200"));
  bench.pass(2);
  const double idle = testing::expect_ok(bench.front().power_average()).value();
  bench.attach(compute_job());
  bench.pass(0.55);
  const double half = testing::expect_ok(bench.front().power_average()).value();
  const double instant = testing::expect_ok(bench.front().power_instant()).value();
  bench.pass(0.6);
  const double full = testing::expect_ok(bench.front().power_average()).value();
  EXPECT_NEAR(idle, 78, 0.5);
  EXPECT_NEAR((half - idle) / (full - idle), 0.5, 0.1);
  EXPECT_NEAR(instant, full, 0.05 * full);
}

TEST(Utilization, ShowsTheShareOfTimeWithAKernel) {
  Bench bench(quiet_device("h200"));
  bench.attach(two_phase_job(0.05));  // 1 / 1.4 of it kernels
  bench.pass(20);
  const auto samples =
      testing::expect_ok(bench.front().gpu_utilization_samples_since(instant_from_ns(0)));
  EXPECT_EQ(samples.size(), 71U);
  EXPECT_NEAR(testing::expect_ok(bench.front().utilization()).gpu, 1 / 1.4, 0.01);
  EXPECT_EQ(to_seconds(samples[1].time - samples[0].time).value(), 0.2);
}

TEST(Counters, AreMeansBetweenCallsAndMoveWithTheirPeriod) {
  Bench bench(quiet_device("h200"));
  auto opened = testing::expect_ok(open_device(bench.twin, 0, gpu::Access::kReadOnly));
  JobSpec job = two_phase_job(0.05);
  job.stages[0].variants[0].phases[0].response.tensor = 0.6;
  bench.attach(job);
  EXPECT_EQ(opened->counters().error().kind, ErrorKind::kBusy);
  bench.pass(0.05);
  EXPECT_EQ(opened->counters().error().kind, ErrorKind::kBusy);
  bench.pass(10);
  const auto counters = testing::expect_ok(opened->counters());
  EXPECT_NEAR(counters.window.value(), 10, 0.11);
  EXPECT_NEAR(*counters.gr_active, 1 / 1.4, 0.01);
  EXPECT_NEAR(*counters.tensor_active, 0.6 / 1.4, 0.01);
  EXPECT_EQ(opened->controls(), nullptr);
}

TEST(Processes, ShowTheJobsPidAndMemory) {
  Bench bench(quiet_device("h200"));
  JobOptions options;
  options.pid = 4711;
  const JobHandle job = bench.attach(compute_job(), options);
  const auto processes = testing::expect_ok(bench.front().compute_processes());
  ASSERT_EQ(processes.size(), 1U);
  EXPECT_EQ(processes[0].pid, 4711);
  EXPECT_EQ(processes[0].memory_bytes, std::uint64_t{8} << 30);
  EXPECT_EQ(testing::expect_ok(bench.front().memory_use()).used_bytes, std::uint64_t{8} << 30);
  ASSERT_TRUE(bench.twin.detach(0, job).has_value());
  EXPECT_TRUE(bench.front().compute_processes()->empty());
}

TEST(TwinDevice, ShowsItsModelThroughThePort) {
  Bench bench(quiet_device("rtx3080ti"));
  auto opened = testing::expect_ok(open_device(bench.twin, 0, gpu::Access::kControl));
  EXPECT_TRUE(opened->identity().simulated);
  EXPECT_EQ(opened->identity().uuid.substr(0, 13), "GPU-7714e500-");
  EXPECT_EQ(opened->identity().uuid.size(), 40U);
  const gpu::Capabilities& can = opened->capabilities();
  ASSERT_EQ(can.clocks.size(), 5U);
  EXPECT_EQ(to_mhz(can.clocks[0].memory), 9501);
  EXPECT_EQ(to_mhz(can.clocks[4].sm.back()), 420);
  EXPECT_EQ(can[gpu::Reading::kCounters], gpu::Support::kNo);
  gpu::Controls* controls = opened->controls();
  ASSERT_NE(controls, nullptr);
  ASSERT_TRUE(controls->set_power_limit(Watts(250)).has_value());
  EXPECT_EQ(opened->power_limit()->value(), 250);
  ASSERT_TRUE(controls->reset_power_limit().has_value());
  EXPECT_EQ(opened->power_limit()->value(), 350);
}

}  // namespace
}  // namespace gpoeo::twin
