// SPDX-License-Identifier: Apache-2.0
#include "iteration/period.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "iteration/testing/power_traces.h"

namespace gpoeo::iteration {
namespace {

using testing::JobOptions;
using testing::make_job;

double mean_iteration_s(const testing::Job& job) {
  return (job.end_s.back() - job.end_s.front()) / static_cast<double>(job.end_s.size() - 1);
}

PowerTrace with_times(PowerTrace trace, auto change) {
  std::ranges::transform(trace.t_s, trace.t_s.begin(), change);
  return trace;
}

struct Kind {
  double period_s, sample_s, duration_s;
};

class Periods : public ::testing::TestWithParam<Kind> {
 protected:
  testing::Job job() const {
    JobOptions o;
    o.period_s = GetParam().period_s;
    o.sample_s = GetParam().sample_s;
    o.duration_s = GetParam().duration_s;
    o.profile_seed = 5;
    return make_job(o);
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, Periods,
                         ::testing::Values(Kind{0.1, 0.02, 22}, Kind{0.21, 0.05, 20},
                                           Kind{0.35, 0.02, 6}, Kind{0.7, 0.1, 25},
                                           Kind{1.3, 0.05, 15}, Kind{3.1, 0.02, 25},
                                           Kind{0.061, 0.01, 5}));

TEST_P(Periods, AreFoundToOnePercentWithConfidence) {
  const auto traced = job();
  const PeriodEstimate estimate = estimate_period(traced.trace);
  ASSERT_TRUE(estimate.period_s) << estimate.reason;
  EXPECT_NEAR(*estimate.period_s / mean_iteration_s(traced), 1, 0.01);
  EXPECT_GT(estimate.confidence, 0.7);
  EXPECT_TRUE(estimate.reason.empty());
}

TEST_P(Periods, DoNotChangeWhenTimeIsShifted) {
  const PowerTrace trace = job().trace;
  const auto before = estimate_period(trace);
  const auto after = estimate_period(with_times(trace, [](double t) { return t + 1234.5; }));
  ASSERT_TRUE(before.period_s && after.period_s);
  EXPECT_NEAR(*after.period_s / *before.period_s, 1, 1e-4);
}

TEST_P(Periods, StretchWithTime) {
  const PowerTrace trace = job().trace;
  const auto before = estimate_period(trace);
  const auto after = estimate_period(with_times(trace, [](double t) { return 1.37 * t; }));
  ASSERT_TRUE(before.period_s && after.period_s);
  EXPECT_NEAR(*after.period_s / *before.period_s, 1.37, 1.37 * 1e-3);
}

TEST_P(Periods, DoNotChangeWhenPowerIsScaledAndOffset) {
  PowerTrace trace = job().trace;
  const auto before = estimate_period(trace);
  for (double& w : trace.power_w) w = 0.5 * w + 100;
  const auto after = estimate_period(trace);
  ASSERT_TRUE(before.period_s && after.period_s);
  EXPECT_NEAR(*after.period_s / *before.period_s, 1, 1e-6);
}

TEST_P(Periods, DoNotChangeWhenTheTraceIsReversed) {
  PowerTrace trace = job().trace;
  const auto before = estimate_period(trace);
  const double end = trace.t_s.back();
  std::ranges::reverse(trace.t_s);
  std::ranges::reverse(trace.power_w);
  for (double& t : trace.t_s) t = end - t;
  const auto after = estimate_period(trace);
  ASSERT_TRUE(before.period_s && after.period_s);
  EXPECT_NEAR(*after.period_s / *before.period_s, 1, 2e-3);
}

TEST_P(Periods, HardlyChangeWhenResampledUnevenly) {
  const PowerTrace trace = job().trace;
  const auto before = estimate_period(trace);
  PowerTrace thinned;
  for (std::size_t i = 0; i < trace.t_s.size(); ++i) {
    if (i % 11 == 5) continue;
    thinned.t_s.push_back(trace.t_s[i]);
    thinned.power_w.push_back(trace.power_w[i]);
  }
  const auto after = estimate_period(thinned);
  ASSERT_TRUE(before.period_s && after.period_s);
  EXPECT_NEAR(*after.period_s / *before.period_s, 1, 5e-3);
}

TEST(Period, CountsThroughJitterTrendAndGaps) {
  JobOptions o;
  o.period_s = 0.45;
  o.jitter = 0.04;
  o.drift_w_per_s = 3;
  auto job = make_job(o);
  const auto in_gap = [](double t) { return t > 8 && t < 8.6; };
  std::vector<double> t, w;
  for (std::size_t i = 0; i < job.trace.t_s.size(); ++i) {
    if (in_gap(job.trace.t_s[i])) continue;
    t.push_back(job.trace.t_s[i]);
    w.push_back(job.trace.power_w[i]);
  }
  const auto estimate = estimate_period(PowerTrace{t, w});
  ASSERT_TRUE(estimate.period_s) << estimate.reason;
  EXPECT_NEAR(*estimate.period_s / mean_iteration_s(job), 1, 0.01);
}

TEST(Period, ReportsTheStepAboveTheMicroStep) {
  // Eight micro-steps of which the last is hotter: a step.
  JobOptions o;
  o.period_s = 0.15;
  o.jitter = 0.001;
  auto job = make_job(o);
  for (std::size_t i = 0; i < job.trace.t_s.size(); ++i) {
    const double micro_step = job.trace.t_s[i] / o.period_s;
    if (static_cast<int>(micro_step) % 8 == 7) job.trace.power_w[i] += 60;
  }
  const auto estimate = estimate_period(job.trace);
  ASSERT_EQ(estimate.levels.size(), 2U) << estimate.reason;
  EXPECT_NEAR(estimate.levels[0].period_s, 0.15, 0.0015);
  EXPECT_NEAR(estimate.levels[1].period_s, 1.2, 0.012);
}

TEST(Period, SaysWhenTheSamplingIsTooCoarse) {
  JobOptions o;
  o.period_s = 0.055;
  o.jitter = 0.002;
  const auto estimate = estimate_period(make_job(o).trace);
  EXPECT_FALSE(estimate.period_s);
  EXPECT_NE(estimate.reason.find("cannot resolve"), std::string::npos) << estimate.reason;
  EXPECT_LT(estimate.confidence, 0.5);
}

TEST(Period, SaysAperiodicForNoiseAndRandomWalks) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    PowerTrace noise, walk;
    double at = 400;
    for (int i = 0; i < 1000; ++i) {
      noise.t_s.push_back(0.02 * i);
      noise.power_w.push_back(400 + 30 * normal(random));
      walk.t_s.push_back(0.02 * i);
      walk.power_w.push_back(at += normal(random));
    }
    EXPECT_FALSE(estimate_period(noise).period_s) << "noise, seed " << seed;
    EXPECT_FALSE(estimate_period(walk).period_s) << "walk, seed " << seed;
  }
}

TEST(Period, GivesAReasonForUnusableTraces) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const auto reason = [](std::vector<double> t, std::vector<double> w) {
    const auto estimate = estimate_period(PowerTrace{std::move(t), std::move(w)});
    EXPECT_FALSE(estimate.period_s);
    EXPECT_EQ(estimate.confidence, 0);
    return estimate.reason;
  };
  std::vector<double> t, constant, varying;
  for (int i = 0; i < 100; ++i) {
    t.push_back(0.02 * i);
    constant.push_back(300);
    varying.push_back(300 + i % 10);
  }
  EXPECT_FALSE(reason({}, {}).empty());
  EXPECT_FALSE(reason({0, 1}, {5, 6}).empty());
  EXPECT_NE(reason(t, constant).find("vary"), std::string::npos);
  for (const double bad : {kNan, kInf, -kInf}) {
    auto with_bad = varying;
    with_bad[50] = bad;
    EXPECT_NE(reason(t, with_bad).find("sample 50"), std::string::npos);
    auto bad_time = t;
    bad_time[50] = bad;
    EXPECT_NE(reason(bad_time, varying).find("50"), std::string::npos);
  }
  auto backwards = t;
  std::swap(backwards[30], backwards[31]);
  EXPECT_NE(reason(backwards, varying).find("rise"), std::string::npos);
  auto hole = t;
  for (std::size_t i = 60; i < hole.size(); ++i) hole[i] += 100;
  EXPECT_NE(reason(hole, varying).find("no samples"), std::string::npos);
}

TEST(Period, TakesHugeTracesAndHugeNumbers) {
  PowerTrace trace;
  for (int i = 0; i < 200'000; ++i) {
    trace.t_s.push_back(0.02 * i);
    trace.power_w.push_back(i % 25 < 12 ? 1e300 : -1e300);
  }
  const auto huge = estimate_period(trace);  // any answer, no crash
  EXPECT_TRUE(!huge.period_s || *huge.period_s > 0);
  for (double& w : trace.power_w) w *= 1e-298;
  const auto estimate = estimate_period(trace);
  ASSERT_TRUE(estimate.period_s);
  EXPECT_NEAR(*estimate.period_s, 0.5, 1e-3);
}

TEST(PeriodStream, AnswersAsTheBatchDoesAndForgets) {
  JobOptions o;
  o.period_s = 0.3;
  o.duration_s = 40;
  const auto first = make_job(o);
  PeriodStream stream(20);
  EXPECT_FALSE(stream.estimate().period_s);
  for (std::size_t i = 0; i < first.trace.t_s.size(); ++i) {
    stream.push(first.trace.t_s[i], first.trace.power_w[i]);
    stream.push(first.trace.t_s[i], 1e9);  // not after the one before: dropped
  }
  ASSERT_TRUE(stream.estimate().period_s);
  EXPECT_NEAR(*stream.estimate().period_s, 0.3, 0.003);
  o.period_s = 0.42;
  const auto second = make_job(o);
  for (std::size_t i = 0; i < second.trace.t_s.size(); ++i) {
    stream.push(100 + second.trace.t_s[i], second.trace.power_w[i]);
  }
  ASSERT_TRUE(stream.estimate().period_s);
  EXPECT_NEAR(*stream.estimate().period_s, 0.42, 0.0042) << "the old window is forgotten";
  stream.reset();
  EXPECT_FALSE(stream.estimate().period_s);
}

}  // namespace
}  // namespace gpoeo::iteration
