// SPDX-License-Identifier: Apache-2.0
#include "iteration/slowdown.h"

#include <gtest/gtest.h>

#include <cmath>

#include "iteration/testing/power_traces.h"

namespace gpoeo::iteration {
namespace {

using testing::JobOptions;
using testing::make_job;

double mean_iteration_s(const testing::Job& job) {
  return (job.end_s.back() - job.end_s.front()) / static_cast<double>(job.end_s.size() - 1);
}

TEST(CompareTraces, FindsTheRatioAndItsIntervalCoversAsOftenAsItSays) {
  int asked = 0, answered = 0, covered = 0;
  double worst = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    JobOptions o;
    o.period_s = 0.12 * std::pow(1.025, static_cast<double>(seed));  // 0.12 to 2.3 s
    o.duration_s = 14;
    o.jitter = 0.02;
    o.seed = seed;
    o.profile_seed = seed;
    const auto a = make_job(o);
    o.stretch = 0.96 + 0.003 * static_cast<double>(seed);  // to 1.32
    o.seed = seed + 1000;
    const auto b = make_job(o);
    const double truth = mean_iteration_s(b) / mean_iteration_s(a);
    const auto estimate = compare_traces(a.trace, b.trace);
    ++asked;
    if (!estimate.time_ratio) continue;
    ++answered;
    covered += estimate.low <= truth && truth <= estimate.high;
    worst = std::max(worst, std::abs(*estimate.time_ratio - truth));
  }
  EXPECT_GE(answered, asked * 8 / 10);
  EXPECT_GE(covered, answered * 85 / 100);
  EXPECT_LE(worst, 0.05) << "no rhythm is taken for another";
}

TEST(CompareTraces, ChangesAsItMustWhenTheTracesAreSwappedOrStretched) {
  JobOptions o;
  o.period_s = 0.33;
  o.jitter = 0.005;
  const auto a = make_job(o);
  o.stretch = 1.08;
  o.seed = 2;
  const auto b = make_job(o);
  const auto forward = compare_traces(a.trace, b.trace);
  const auto backward = compare_traces(b.trace, a.trace);
  ASSERT_TRUE(forward.time_ratio && backward.time_ratio);
  EXPECT_NEAR(*forward.time_ratio * *backward.time_ratio, 1, 2e-3);
  PowerTrace slower = b.trace;
  for (double& t : slower.t_s) t = 500 + 1.1 * t;
  const auto stretched = compare_traces(a.trace, slower);
  ASSERT_TRUE(stretched.time_ratio);
  EXPECT_NEAR(*stretched.time_ratio / *forward.time_ratio, 1.1, 2e-3);
}

TEST(CompareTraces, RefusesWhatCannotBeKnown) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  PowerTrace noise, other;
  for (int i = 0; i < 600; ++i) {
    noise.t_s.push_back(0.02 * i);
    noise.power_w.push_back(400 + 30 * normal(random));
    other.t_s.push_back(0.02 * i);
    other.power_w.push_back(400 + 30 * normal(random));
  }
  JobOptions o;
  const auto job = make_job(o).trace;
  for (const auto& [a, b] : {std::pair(noise, other), std::pair(noise, job), std::pair(job, noise),
                             std::pair(job, PowerTrace{}), std::pair(PowerTrace{}, PowerTrace{})}) {
    const auto estimate = compare_traces(a, b);
    EXPECT_FALSE(estimate.time_ratio);
    EXPECT_FALSE(estimate.reason.empty());
  }
}

TEST(CompareTraces, RefusesARhythmTooFastForTheSampling) {
  // 31 ms at 20 ms samples looks like 56 ms, and a slower clock would look like a faster one.
  JobOptions o;
  o.period_s = 0.031;
  o.segments = 1;
  o.jitter = 0.002;
  o.duration_s = 11;
  const auto a = make_job(o);
  o.stretch = 1.04;
  o.seed = 2;
  const auto estimate = compare_traces(a.trace, make_job(o).trace);
  EXPECT_FALSE(estimate.time_ratio);
  EXPECT_NE(estimate.reason.find("cannot resolve"), std::string::npos) << estimate.reason;
}

TEST(CompareTraces, RefusesARhythmThatWanders) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    JobOptions o;
    o.period_s = 0.5;
    o.jitter = 0.3;
    o.duration_s = 10;
    o.seed = seed;
    const auto a = make_job(o);
    o.seed = seed + 50;
    const auto b = make_job(o);
    const double truth = mean_iteration_s(b) / mean_iteration_s(a);
    const auto estimate = compare_traces(a.trace, b.trace);
    if (!estimate.time_ratio) continue;
    EXPECT_LE(estimate.low, truth) << seed;
    EXPECT_GE(estimate.high, truth) << seed;
  }
}

TEST(CompareIterationEnds, IsExact) {
  const std::vector<std::int64_t> a = {0, 100, 200, 300, 400}, b = {1000, 1110, 1220, 1330};
  const auto estimate = compare_iteration_ends(a, b);
  ASSERT_TRUE(estimate.time_ratio);
  EXPECT_DOUBLE_EQ(*estimate.time_ratio, 1.1);
  EXPECT_DOUBLE_EQ(estimate.low, 1.1);
  EXPECT_DOUBLE_EQ(estimate.high, 1.1);
  EXPECT_EQ(estimate.confidence, 1);
}

TEST(CompareIterationEnds, WidensWithTheScatterOfTheIterations) {
  const std::vector<std::int64_t> even = {0, 100, 200, 300, 400}, uneven = {0, 80, 200, 320, 400};
  const auto estimate = compare_iteration_ends(even, uneven);
  ASSERT_TRUE(estimate.time_ratio);
  EXPECT_DOUBLE_EQ(*estimate.time_ratio, 1);
  EXPECT_GT(estimate.high - estimate.low, 0.2);
}

TEST(CompareIterationEnds, GivesAReasonForTooFewOrFallingEnds) {
  const std::vector<std::int64_t> good = {0, 1, 2}, few = {0, 1}, falling = {5, 4, 3};
  for (const auto* bad : {&few, &falling}) {
    EXPECT_FALSE(compare_iteration_ends(good, *bad).time_ratio);
    EXPECT_FALSE(compare_iteration_ends(*bad, good).reason.empty());
  }
}

}  // namespace
}  // namespace gpoeo::iteration
