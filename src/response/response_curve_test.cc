// SPDX-License-Identifier: Apache-2.0
#include "response/response_curve.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace gpoeo::response {
namespace {

constexpr std::string_view kHeader =
    "workload,sm_clock_mhz,mem_clock_mhz,power_limit_w,time_s,power_w,sm_active,fp64_active\n";

Workload workload(const std::string& rows) {
  auto table = parse_response_table(std::string(kHeader) + rows, "t.csv");
  EXPECT_TRUE(table) << (table ? "" : table.error().text);
  return table->workloads.at(0);
}

WorkloadCurves fit(const std::string& rows) {
  auto curves = WorkloadCurves::fit(workload(rows));
  EXPECT_TRUE(curves) << (curves ? "" : curves.error().text);
  return *curves;
}

// Two memory clocks, 31 SM clocks, noise of 0.5 %.
std::vector<std::string> noisy_grid(double time_unit = 1, double power_unit = 1) {
  std::mt19937 random(3);
  std::normal_distribution<double> noise(1, 0.005);
  std::vector<std::string> rows;
  for (const int mem : {810, 3505}) {
    for (int sm = 600; sm <= 1200; sm += 20) {
      const double time = (0.4 + 0.6 * 1200 / sm) * (mem == 810 ? 1.6 : 1) * noise(random);
      const double power = (50 + 150.0 * sm * sm / 1.44e6) * noise(random);
      rows.push_back(fmt::format("a,{},{},,{},{},{},0\n", sm, mem, time * time_unit,
                                 power * power_unit, 0.5 + 0.3 * sm / 1200));
    }
  }
  return rows;
}

std::string join(const std::vector<std::string>& rows) {
  std::string text;
  for (const auto& r : rows) text += r;
  return text;
}

TEST(WorkloadCurves, DefaultIsExactlyOne) {
  const auto curves = fit(join(noisy_grid()));
  for (const Setting& s : {Setting{}, curves.default_setting(),
                           Setting{.sm_mhz = 1200, .mem_mhz = 3505}, Setting{.sm_mhz = 1200}}) {
    const Response r = curves.at(s);
    EXPECT_EQ(r.relative_time, 1.0);
    EXPECT_EQ(r.relative_power, 1.0);
    EXPECT_EQ(r.relative_energy, 1.0);
    EXPECT_EQ(r.power_w, curves.default_power_w());
    EXPECT_FALSE(r.clamped || r.other_memory || r.other_limit);
  }
  EXPECT_NEAR(curves.default_time_s(), 1.0, 0.01);
  EXPECT_NEAR(curves.default_power_w(), 200, 2);
}

TEST(WorkloadCurves, FollowsTheTruthBetweenMeasuredClocks) {
  const auto curves = fit(join(noisy_grid()));
  for (double sm = 600; sm <= 1200; sm += 7) {
    const Response r = curves.at({.sm_mhz = sm});
    EXPECT_NEAR(r.relative_time, 0.4 + 0.6 * 1200 / sm, 0.01);
    EXPECT_NEAR(*r.power_w, 50 + 150 * sm * sm / 1.44e6, 1.5);
    EXPECT_NEAR(*r.relative_energy, r.relative_time * *r.power_w / curves.default_power_w(), 1e-12);
    EXPECT_NEAR(*r.counters[Counter::kSmActive], 0.5 + 0.3 * sm / 1200, 1e-3);
    EXPECT_EQ(*r.counters[Counter::kFp64Active], 0.0);
    EXPECT_EQ(r.counters[Counter::kDramActive], std::nullopt);
    EXPECT_NEAR(curves.at({.sm_mhz = sm, .mem_mhz = 810}).relative_time,
                1.6 * (0.4 + 0.6 * 1200 / sm), 0.016);
  }
}

TEST(WorkloadCurves, TimeNeverRisesWithTheClockAndPowerIsPositive) {
  const auto curves = fit(join(noisy_grid()));
  ASSERT_EQ(curves.lines().size(), 2U);
  EXPECT_EQ(curves.lines()[0].mem_mhz, 3505) << "the default's line first";
  for (const Line& line : curves.lines()) {
    double before = line.relative_time.at(line.x.front());
    for (double sm = line.x.front(); sm <= line.x.back(); sm += 1) {
      const double now = line.relative_time.at(sm);
      EXPECT_LE(now, before);
      EXPECT_GT(line.power_w->at(sm), 0);
      before = now;
    }
  }
}

TEST(WorkloadCurves, RowOrderDoesNotMatter) {
  auto rows = noisy_grid();
  const auto a = fit(join(rows));
  std::mt19937 random(1);
  std::ranges::shuffle(rows, random);
  const auto b = fit(join(rows));
  for (double sm = 600; sm <= 1200; sm += 5) {
    for (const double mem : {810.0, 3505.0}) {
      const Setting s{.sm_mhz = sm, .mem_mhz = mem};
      EXPECT_EQ(a.at(s).relative_time, b.at(s).relative_time);
      EXPECT_EQ(a.at(s).power_w, b.at(s).power_w);
    }
  }
}

TEST(WorkloadCurves, UnitsOfTimeAndPowerDoNotMatter) {
  const auto a = fit(join(noisy_grid()));
  const auto b = fit(join(noisy_grid(1e-3, 2)));
  for (double sm = 600; sm <= 1200; sm += 5) {
    const Response ra = a.at({.sm_mhz = sm});
    const Response rb = b.at({.sm_mhz = sm});
    EXPECT_NEAR(ra.relative_time, rb.relative_time, 1e-7);
    EXPECT_NEAR(*ra.relative_energy, *rb.relative_energy, 1e-7);
    EXPECT_NEAR(*rb.power_w / *ra.power_w, 2, 1e-6);
  }
  EXPECT_NEAR(b.default_time_s(), 1e-3 * a.default_time_s(), 1e-9);
}

TEST(WorkloadCurves, OutsideOfTheMeasuredRangeIsClampedAndSaysSo) {
  const auto curves = fit(join(noisy_grid()));
  const Response low = curves.at({.sm_mhz = 200});
  EXPECT_TRUE(low.clamped);
  EXPECT_EQ(low.used.sm_mhz, 600);
  EXPECT_EQ(low.relative_time, curves.at({.sm_mhz = 600}).relative_time);
  EXPECT_TRUE(curves.at({.sm_mhz = 2000}).clamped);
  const Response mem = curves.at({.sm_mhz = 900, .mem_mhz = 1000});
  EXPECT_TRUE(mem.other_memory);
  EXPECT_FALSE(mem.clamped);
  EXPECT_EQ(mem.used.mem_mhz, 810);
}

TEST(WorkloadCurves, OnePointIsAnsweredEverywhere) {
  const auto curves = fit("a,1000,,,2,100,0.5,\n");
  EXPECT_EQ(curves.at({}).relative_time, 1.0);
  const Response r = curves.at({.sm_mhz = 500});
  EXPECT_EQ(r.relative_time, 1.0);
  EXPECT_NEAR(*r.power_w, 100, 1e-9);
  EXPECT_TRUE(r.clamped);
}

TEST(WorkloadCurves, ThreePointsAreInterpolated) {
  const auto curves = fit("a,1400,,,1,300,,\na,1000,,,1.3,200,,\na,600,,,2,120,,\n");
  EXPECT_NEAR(curves.at({.sm_mhz = 1000}).relative_time, 1.3, 1e-12);
  EXPECT_NEAR(*curves.at({.sm_mhz = 600}).power_w, 120, 1e-9);
  EXPECT_EQ(curves.lines()[0].relative_time.residuals().lambda, 0);
}

TEST(WorkloadCurves, PowerLimitTable) {
  const auto curves =
      fit("a,default,default,100,2,98,,\na,default,default,150,1.2,148,,\n"
          "a,default,default,250,1,200,,\n");
  ASSERT_EQ(curves.lines().size(), 1U);
  EXPECT_EQ(curves.lines()[0].axis, Line::Axis::kPowerLimit);
  EXPECT_EQ(curves.at({}).relative_time, 1.0);
  const Response r = curves.at({.power_limit_w = 100});
  EXPECT_NEAR(r.relative_time, 2, 1e-12);
  EXPECT_EQ(r.used.power_limit_w, 100);
  EXPECT_FALSE(r.clamped);
  EXPECT_TRUE(curves.at({.power_limit_w = 50}).clamped);
}

TEST(WorkloadCurves, ADefaultRowAtTheDriversClocksStandsForItself) {
  const auto curves =
      fit("a,default,default,,1.0,300,0.9,\n"
          "a,1500,5000,,1.02,290,0.8,\na,1000,5000,,1.4,200,0.7,\n");
  EXPECT_EQ(curves.at({}).relative_time, 1.0);
  EXPECT_EQ(curves.at({}).counters[Counter::kSmActive], 0.9);
  EXPECT_EQ(curves.at(curves.default_setting()).power_w, 300);
  EXPECT_NEAR(curves.at({.sm_mhz = 1500}).relative_time, 1.02, 1e-12);
  EXPECT_NEAR(curves.at({.sm_mhz = 1000, .mem_mhz = 5000}).relative_time, 1.4, 1e-12);
}

TEST(WorkloadCurves, LinesOfOnePowerLimitEach) {
  const auto curves =
      fit("a,1500,,300,1.0,290,,\na,1000,,300,1.4,200,,\n"
          "a,1500,,200,1.2,200,,\na,1000,,200,1.45,190,,\n");
  EXPECT_EQ(curves.lines().size(), 2U);
  EXPECT_NEAR(curves.at({.sm_mhz = 1500, .power_limit_w = 200}).relative_time, 1.2, 1e-12);
  EXPECT_EQ(curves.at({.sm_mhz = 1500}).used.power_limit_w, 300);
  EXPECT_TRUE(curves.at({.sm_mhz = 1500, .power_limit_w = 220}).other_limit);
}

TEST(WorkloadCurves, UnknownPowerAndCountersStayUnknown) {
  const auto curves = fit("a,1500,5000,,1.0,290,,\na,1500,800,,3,,,\na,1000,800,,3.5,,,\n");
  const Response r = curves.at({.sm_mhz = 1200, .mem_mhz = 800});
  EXPECT_GT(r.relative_time, 3);
  EXPECT_EQ(r.power_w, std::nullopt);
  EXPECT_EQ(r.relative_energy, std::nullopt);
}

TEST(WorkloadCurves, RefusesWhatCannotBeRelative) {
  Workload w = workload("a,1500,5000,,1.0,290,,\n");
  w.points[0].time_s.reset();
  EXPECT_FALSE(WorkloadCurves::fit(w));
  w.points.clear();
  EXPECT_FALSE(WorkloadCurves::fit(w));
  std::string many;
  for (int i = 1; i <= 300; ++i) many += fmt::format("a,1000,{},,1,100,,\n", i);
  const auto refused = WorkloadCurves::fit(workload(many));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, testing::HasSubstr("'a'"));
}

}  // namespace
}  // namespace gpoeo::response
