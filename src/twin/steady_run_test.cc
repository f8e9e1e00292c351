// SPDX-License-Identifier: Apache-2.0
// The settled truth agrees with the card that policies see, capped or not.
#include "twin/steady_run.h"

#include <gtest/gtest.h>

#include <cmath>

#include "twin/testing/fixtures.h"
#include "twin/twin_device.h"

namespace gpoeo::twin {
namespace {

using testing::expect_ok;

struct Seen {
  double iteration_s, power_w;
};

// What a card shows of a job that runs locked to one pair, warm.
Seen seen(const DeviceModel& model, const JobSpec& job, double sm_mhz, double memory_mhz) {
  testing::Bench bench(model);
  bench.attach(job);
  bench.lock_sm(sm_mhz);
  const double lowest = model.memory_mhz[static_cast<std::size_t>(model.memory_clock_count - 1)];
  EXPECT_TRUE(
      bench.front().lock_memory_clocks({megahertz(lowest), megahertz(memory_mhz)}).has_value());
  bench.pass(20 * model.thermal_tau_s);
  const CardTruth before = bench.truth();
  bench.pass(300);
  const CardTruth after = bench.truth();
  const JobTruth &from = before.jobs.back(), &to = after.jobs.back();
  return {static_cast<double>(to.end_ns - from.end_ns) * 1e-9 /
              static_cast<double>(to.iterations - from.iterations),
          (after.energy - before.energy).value() / 300.0};
}

TEST(SteadyRun, AgreesWithTheCardAtEveryKindOfClock) {
  const DeviceModel model = testing::quiet_device("rtx3080ti");
  const JobSpec job = testing::steady_job("rtx3080ti", "resnet50");
  const auto work = expect_ok(compile(job, model));
  int capped = 0;
  for (const int memory : {0, 2})
    for (const int sm : {40, 80, model.default_sm}) {
      const SteadyPoint point = steady_point(*work, model, 0, memory, sm);
      const Seen card = seen(model, job, model.sm_mhz[static_cast<std::size_t>(sm)],
                             model.memory_mhz[static_cast<std::size_t>(memory)]);
      EXPECT_NEAR(point.iteration_s / card.iteration_s, 1, 0.003) << memory << " " << sm;
      EXPECT_NEAR(point.power_w / card.power_w, 1, 0.003) << memory << " " << sm;
      capped += point.capped ? 1 : 0;
    }
  EXPECT_GT(capped, 0);  // else the governor's half was not tried
}

TEST(SteadyRun, CountersAreWhatGpmShows) {
  const DeviceModel model = testing::quiet_device("h200");
  const JobSpec job = testing::steady_job("h200", "dlrm");
  const auto work = expect_ok(compile(job, model));
  const SteadyPoint point = steady_point(*work, model, 0, 0, 50);
  testing::Bench bench(model);
  bench.attach(job);
  bench.lock_sm(model.sm_mhz[50]);
  bench.pass(60);
  const auto opened = expect_ok(open_device(bench.twin, 0, gpu::Access::kReadOnly));
  (void)opened->counters();  // the first call only opens the window
  bench.pass(120);
  const auto shown = expect_ok(opened->counters());
  ASSERT_TRUE(shown.dram_active.has_value());
  EXPECT_NEAR(point.activity[static_cast<std::size_t>(Activity::kDramActive)], *shown.dram_active,
              0.01);
  EXPECT_NEAR(point.activity[static_cast<std::size_t>(Activity::kSmActive)], *shown.sm_active,
              0.01);
}

TEST(SteadyRun, CoversEveryPairOfTheDeviceOnce) {
  const DeviceModel model = testing::quiet_device("rtx3080ti");
  const auto work = expect_ok(compile(testing::compute_job(), model));
  const auto points = steady_response(*work, model, 0);
  int pairs = 0;
  for (int m = 0; m < model.memory_clock_count; ++m)
    pairs += model.sm_number[static_cast<std::size_t>(m)];
  EXPECT_EQ(points.size(), static_cast<std::size_t>(pairs));
  for (const SteadyPoint& point : points) EXPECT_GT(point.power_w, 0);
}

}  // namespace
}  // namespace gpoeo::twin
