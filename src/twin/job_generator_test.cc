// SPDX-License-Identifier: Apache-2.0
// The generated corpus covers its plane, stays physical, and is the same every time.
#include "twin/job_generator.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "twin/steady_run.h"
#include "twin/testing/fixtures.h"

namespace gpoeo::twin {
namespace {

using testing::expect_ok;

TEST(JobGenerator, SameSeedAndIndexGiveTheSameJobAndOthersAnother) {
  const DeviceModel model = testing::quiet_device("a100");
  const auto cost = [&](std::uint64_t seed, int index) {
    const auto work = expect_ok(compile(generate_job(seed, index), model));
    const SteadyPoint point = steady_point(*work, model, 0, 0, 10);
    return std::pair(point.iteration_s, point.power_w);
  };
  EXPECT_EQ(cost(1, 17), cost(1, 17));
  EXPECT_NE(cost(1, 17), cost(2, 17));
  EXPECT_NE(cost(1, 17), cost(1, 18));
  EXPECT_EQ(generate_job(1, 6).name, "host-0006");
}

TEST(JobGenerator, EveryJobIsPhysicalOnEveryDevice) {
  for (const std::string& name : expect_ok(device_names())) {
    const DeviceModel model = testing::quiet_device(name);
    for (int i = 0; i < 48; ++i) {
      SCOPED_TRACE(name + " job " + std::to_string(i));
      const auto work = expect_ok(compile(generate_job(3, i), model));
      double before = 1e30;
      for (int s = 0; s < model.sm_number[0]; s += 10) {
        const SteadyPoint point = steady_point(*work, model, 0, 0, model.sm_first[0] + s);
        // The governor's dithering leaves a little noise where the cap binds.
        EXPECT_LE(point.iteration_s, before * 1.003);
        before = point.iteration_s;
        EXPECT_GT(point.power_w, 0);
        EXPECT_LT(point.power_w, model.limit_default_w * 1.01);
        for (std::size_t a = 0; a <= static_cast<std::size_t>(Activity::kFp16Active); ++a) {
          EXPECT_GE(point.activity[a], 0);
          EXPECT_LE(point.activity[a], 1.000001);
        }
      }
    }
  }
}

// What half the SM clock costs and which counters show must spread over what measured workloads
// show (A100 tables: time at 960 MHz 1.00 to 1.46, gr_active 0.02 to 1, dram_active 0 to 0.86).
TEST(JobGenerator, SpreadsOverThePlaneThatMeasuredWorkloadsSpan) {
  const DeviceModel model = testing::quiet_device("a100");
  double least = 1e9, most = 0, gr_least = 1, dram_most = 0, tensor_most = 0, sm_least = 1;
  const auto at = [](const SteadyPoint& p, Activity a) {
    return p.activity[static_cast<std::size_t>(a)];
  };
  for (int i = 0; i < 240; ++i) {
    const auto work = expect_ok(compile(generate_job(1, i), model));
    const SteadyPoint standard = steady_default(*work, model, 0);
    const double ratio =
        steady_point(*work, model, 0, 0, 50).iteration_s / standard.iteration_s;  // 960 MHz
    least = std::min(least, ratio);
    most = std::max(most, ratio);
    gr_least = std::min(gr_least, at(standard, Activity::kGrActive));
    sm_least = std::min(sm_least, at(standard, Activity::kSmActive));
    dram_most = std::max(dram_most, at(standard, Activity::kDramActive));
    tensor_most = std::max(tensor_most, at(standard, Activity::kTensorActive));
  }
  EXPECT_LT(least, 1.02);
  EXPECT_GT(most, 1.42);
  EXPECT_LT(gr_least, 0.05);
  EXPECT_LT(sm_least, 0.05);
  EXPECT_GT(dram_most, 0.80);
  EXPECT_GT(tensor_most, 0.80);
}

}  // namespace
}  // namespace gpoeo::twin
