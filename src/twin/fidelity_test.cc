// SPDX-License-Identifier: Apache-2.0
// Every shipped measured table comes back out of the twin: relative time and energy of each
// workload at each measured clock, from job speed and true energy at thermal balance.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "response/response_table.h"
#include "twin/data_files.h"
#include "twin/testing/fixtures.h"

namespace gpoeo::twin {
namespace {

struct Worst {
  double error = 0;
  std::string where;
  void see(double e, const std::string& text) {
    if (std::abs(e) >= std::abs(error)) error = e, where = text;
  }
};

// Seconds and joules of an iteration at the present clocks, over 40 iterations.
std::pair<double, double> measure(testing::Bench& bench) {
  const JobTruth before = bench.truth().jobs.back();
  bench.pass(40 * 0.05 * 20);  // the slowest clock takes less than 20 times as long
  const JobTruth after = bench.truth().jobs.back();
  const auto n = static_cast<double>(after.iterations - before.iterations);
  return {static_cast<double>(after.end_ns - before.end_ns) * 1e-9 / n,
          (after.iterations_energy_j - before.iterations_energy_j) / n};
}

void check_table(const std::string& key) {
  const auto data = testing::expect_ok(data_directory());
  const auto table =
      testing::expect_ok(response::read_response_table(data / "tables" / (key + ".csv")));
  const DeviceModel model = testing::quiet_device(key);
  Worst time, energy;
  int points = 0;
  for (const response::Workload& workload : table.workloads) {
    const auto curves = testing::expect_ok(response::WorkloadCurves::fit(workload));
    JobSpec job = testing::steady_job(key, workload.name);
    job.iteration_s = 0.05;
    testing::Bench bench(model);
    bench.attach(job);
    for (const response::Point& point : workload.points) {
      if (!point.setting.sm_mhz) continue;
      const double memory_mhz =
          point.setting.mem_mhz.value_or(static_cast<double>(model.memory_mhz[0]));
      bench.lock_sm(*point.setting.sm_mhz);
      const double lowest_memory =
          model.memory_mhz[static_cast<std::size_t>(model.memory_clock_count - 1)];
      ASSERT_TRUE(bench.front()
                      .lock_memory_clocks({megahertz(lowest_memory), megahertz(memory_mhz)})
                      .has_value());
      bench.pass(20 * model.thermal_tau_s);  // to thermal balance
      const auto [seconds, joules] = measure(bench);
      const response::Response expected = curves.at(point.setting);
      const std::string where = workload.name + " at " + response::to_string(point.setting);
      const double expected_s = 0.05 * expected.relative_time;
      time.see(seconds / expected_s - 1, where);
      energy.see(joules / (expected_s * *expected.power_w) - 1, where);
      ++points;
    }
  }
  std::printf("%s: %d points, worst time %+.4f %% (%s), worst energy %+.4f %% (%s)\n", key.c_str(),
              points, 100 * time.error, time.where.c_str(), 100 * energy.error,
              energy.where.c_str());
  EXPECT_GT(points, 100);
  EXPECT_LT(std::abs(time.error), 0.001);
  EXPECT_LT(std::abs(energy.error), 0.001);
}

TEST(Fidelity, ReproducesTheA100TablesAtThermalBalance) { check_table("a100"); }
TEST(Fidelity, ReproducesTheTitanXTablesAtThermalBalance) { check_table("titanx"); }

}  // namespace
}  // namespace gpoeo::twin
