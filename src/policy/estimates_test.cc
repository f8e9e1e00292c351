// SPDX-License-Identifier: Apache-2.0
#include "policy/estimates.h"

#include <gtest/gtest.h>

#include <cmath>

#include "policy/response_fit.h"

namespace gpoeo::policy {
namespace {

Observation window(std::optional<double> mhz, double at_s, double time_s, double energy_j,
                   double relative_error = 0.002) {
  Observation o;
  if (mhz) o.setting.sm = megahertz(*mhz);
  o.at = Seconds(at_s);
  o.iterations = 20;
  o.time = Seconds(time_s);
  o.time_error = Seconds(time_s * relative_error);
  o.energy = Joules(energy_j);
  o.energy_error = Joules(energy_j * relative_error);
  return o;
}

TEST(Estimates, NothingWithoutABaseline) {
  EXPECT_FALSE(estimate({}));
  const std::vector<Observation> only_probe = {window(1000, 5, 1.1, 80)};
  EXPECT_FALSE(estimate(only_probe));
}

TEST(Estimates, RatiosAreOverTheBaseline) {
  const std::vector<Observation> seen = {window({}, 0, 2.0, 100), window(1200, 10, 2.1, 80),
                                         window(1000, 20, 2.4, 75)};
  const auto e = estimate(seen);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->baselines, 1U);
  ASSERT_EQ(e->clocks.size(), 2U);
  EXPECT_EQ(e->clocks[0].sm, megahertz(1000)) << "ascending";
  EXPECT_NEAR(e->clocks[0].time_ratio, 1.2, 1e-9);
  EXPECT_NEAR(e->clocks[0].energy_ratio, 0.75, 1e-9);
  EXPECT_NEAR(e->clocks[1].time_ratio, 1.05, 1e-9);
  EXPECT_GT(e->clocks[1].time_error, 0.002 * 1.05) << "the baseline's error and drift come on top";
  EXPECT_LT(e->clocks[1].time_error, 0.01);
}

// The job slows down by 3 % for reasons of its own; each probe lies beside its own baseline.
TEST(Estimates, DriftOfTheBaselineIsNoSlowDown) {
  const std::vector<Observation> seen = {window({}, 0, 1.00, 100), window(1200, 8, 1.00, 80),
                                         window({}, 600, 1.03, 103), window(1200, 608, 1.03, 82.4)};
  const auto e = estimate(seen);
  ASSERT_TRUE(e);
  EXPECT_NEAR(e->clocks[0].time_ratio, 1.0, 0.012) << "half of the drift would be 0.015";
  EXPECT_NEAR(e->clocks[0].energy_ratio, 0.8, 0.012);
}

TEST(Estimates, MoreWindowsAreSurerAndFarOnesLessSo) {
  std::vector<Observation> seen = {window({}, 0, 1, 100), window(1200, 10, 1.02, 80)};
  const double one = estimate(seen)->clocks[0].time_error;
  seen.push_back(window(1200, 12, 1.02, 80));
  EXPECT_LT(estimate(seen)->clocks[0].time_error, one);
  const std::vector<Observation> far = {window({}, 0, 1, 100), window(1200, 1000, 1.02, 80)};
  EXPECT_GT(estimate(far)->clocks[0].time_error, one);
}

TEST(Estimates, HeldIsTheNewestWord) {
  std::vector<Observation> seen = {window({}, 0, 1, 100), window(1200, 10, 1.02, 80)};
  seen.back().held = false;
  EXPECT_FALSE(estimate(seen)->clocks[0].held);
  seen.push_back(window(1200, 20, 1.02, 80));
  EXPECT_TRUE(estimate(seen)->clocks[0].held);
}

ClockEstimate clock_at(double mhz, double time_ratio, double power_ratio) {
  return {.sm = megahertz(mhz),
          .time_ratio = time_ratio,
          .time_error = 0.002,
          .energy_ratio = time_ratio * power_ratio,
          .energy_error = 0.002,
          .iterations = 20,
          .held = true};
}

TEST(ResponseFit, RecoversAComputeBoundResponse) {
  const auto time = [](double mhz) { return 0.2 + 0.8 * 1410 / mhz; };
  const auto power = [](double mhz) {
    const double d = 1 - mhz / 1410;
    return 1 - 1.3 * d + 0.6 * d * d;
  };
  std::vector<ClockEstimate> measured;
  for (const double mhz : {900.0, 1080.0, 1290.0}) {
    measured.push_back(clock_at(mhz, time(mhz), power(mhz)));
  }
  const ResponseFit fit(megahertz(1410), measured);
  for (double mhz = 900; mhz <= 1410; mhz += 15) {
    EXPECT_NEAR(fit.time_ratio(megahertz(mhz)), time(mhz), 1e-9) << mhz;
    EXPECT_NEAR(fit.power_ratio(megahertz(mhz)), power(mhz), 0.01) << mhz;
  }
  EXPECT_NEAR(fit.time_ratio(megahertz(800)), time(800), 1e-6) << "goes on below";
}

TEST(ResponseFit, GoesThroughWhatWasMeasured) {
  // Far from any parabola: power falls at the top and then stands still.
  const std::vector<ClockEstimate> measured = {clock_at(800, 1.01, 0.70), clock_at(1000, 1.0, 0.72),
                                               clock_at(1300, 1.0, 0.75)};
  const ResponseFit fit(megahertz(1410), measured);
  for (const auto& e : measured) {
    EXPECT_NEAR(fit.energy_ratio(e.sm), e.energy_ratio, 0.005) << to_mhz(e.sm);
  }
  EXPECT_DOUBLE_EQ(fit.energy_ratio(megahertz(1410)), 1.0);
}

TEST(ResponseFit, TimeNeverFallsAsTheClockDoesWhateverNoiseSays) {
  const std::vector<ClockEstimate> measured = {clock_at(800, 1.10, 0.6), clock_at(900, 1.13, 0.65),
                                               clock_at(1000, 0.99, 0.7), clock_at(1200, 1.01, 0.8),
                                               clock_at(1300, 1.00, 0.9)};
  const ResponseFit fit(megahertz(1410), measured);
  double before = 1;
  for (double mhz = 1410; mhz >= 300; mhz -= 15) {
    const double t = fit.time_ratio(megahertz(mhz));
    EXPECT_GE(t, before - 1e-12) << mhz;
    EXPECT_GE(t, 1.0 - 1e-12) << mhz;
    EXPECT_GT(fit.power_ratio(megahertz(mhz)), 0) << mhz;
    before = t;
  }
  EXPECT_NEAR(fit.time_ratio(megahertz(900)), 1.115, 1e-6) << "the two that contradict are pooled";
}

TEST(ResponseFit, PowerDoesNotRiseAgainBelowTheParabolasLowestPoint) {
  const std::vector<ClockEstimate> measured = {clock_at(1100, 1.0, 0.80),
                                               clock_at(1250, 1.0, 0.85)};
  const ResponseFit fit(megahertz(1410), measured);
  for (double mhz = 1100; mhz > 300; mhz -= 15) {
    EXPECT_LE(fit.power_ratio(megahertz(mhz)), fit.power_ratio(megahertz(mhz + 15)) + 1e-12) << mhz;
  }
}

TEST(ResponseFit, WithoutAnyMeasurementItIsThePrior) {
  const ResponseFit fit(megahertz(1410), {});
  EXPECT_DOUBLE_EQ(fit.time_ratio(megahertz(1410)), 1);
  EXPECT_GT(fit.time_ratio(megahertz(1000)), 1.2) << "as slow as compute could be";
  EXPECT_LT(fit.power_ratio(megahertz(940)), 0.75);
}

}  // namespace
}  // namespace gpoeo::policy
