// SPDX-License-Identifier: Apache-2.0
#include "response/table_check.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpoeo::response {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// 20 clocks of a job whose time goes with 0.4 + 0.6 / f, `bent` by the caller.
LineCheck checked(const std::function<void(int, double&, double&)>& bend, int repeats = 1) {
  std::string text = "workload,sm_clock_mhz,mem_clock_mhz,power_limit_w,time_s,power_w\n";
  for (int r = 0; r < repeats; ++r)
    for (int i = 0; i < 20; ++i) {
      const double f = 500 + 50 * i;
      double time = 0.4 + 0.6 * 1450 / f, power = 50 + 0.1 * f;
      bend(i, time, power);
      text += fmt::format("job,{},,,{},{}\n", f, time, power);
    }
  const auto table = parse_response_table(text, "t.csv");
  EXPECT_TRUE(table.has_value());
  const auto curves = WorkloadCurves::fit(table->workloads[0]);
  EXPECT_TRUE(curves.has_value());
  const auto checks = check_workload(table->workloads[0], *curves);
  EXPECT_EQ(checks.size(), 1U);
  return checks[0];
}

TEST(TableCheck, ACleanLineSaysSo) {
  const LineCheck check = checked([](int, double&, double&) {});
  EXPECT_EQ(check.points, 20);
  EXPECT_TRUE(check.time_outliers.empty());
  EXPECT_EQ(check.rising, 0);
  EXPECT_THAT(describe(check), Not(HasSubstr("outlier")));
}

TEST(TableCheck, NamesAnOutlierAndWhereItIs) {
  const LineCheck check = checked([](int i, double& time, double& power) {
    if (i == 8) time *= 1.2;
    if (i == 12) power *= 0.8;
  });
  ASSERT_EQ(check.time_outliers.size(), 1U);
  EXPECT_EQ(check.time_outliers[0].at, 900);
  EXPECT_NEAR(check.time_outliers[0].off, 0.2, 0.01);
  ASSERT_EQ(check.power_outliers.size(), 1U);
  EXPECT_EQ(check.power_outliers[0].at, 1100);
  EXPECT_EQ(check.rising, 1);
  EXPECT_THAT(describe(check), HasSubstr("1 time outliers: 900 (+20"));
}

TEST(TableCheck, ReportsScatterOfRepeats) {
  int call = 0;
  const LineCheck check = checked(
      [&call](int, double& time, double&) { time *= (call++ / 20) % 2 == 0 ? 1.01 : 0.99; }, 2);
  EXPECT_EQ(check.rows, 40);
  EXPECT_EQ(check.repeated, 20);
  EXPECT_NEAR(*check.median_scatter, 0.01414, 1e-4);
}

TEST(TableCheck, SaysWhenTheDefaultPointIsNotItsCurves) {
  const LineCheck check = checked([](int i, double& time, double&) {
    if (i == 19) time *= 0.88;  // the highest clock
  });
  ASSERT_TRUE(check.default_off.has_value());
  EXPECT_LT(*check.default_off, -0.05);
  EXPECT_THAT(describe(check), HasSubstr("default point lies -"));
}

}  // namespace
}  // namespace gpoeo::response
