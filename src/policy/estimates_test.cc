// SPDX-License-Identifier: Apache-2.0
#include "policy/estimates.h"

#include <gtest/gtest.h>

#include <cmath>

#include "policy/testing/looks.h"

namespace gpoeo::policy {
namespace {

// Not so sharp as a look is by default.
Observation window(std::optional<double> mhz, double at_s, double time_s, double energy_j,
                   double relative_error = 0.002) {
  return testing::look(mhz, at_s, time_s, energy_j, relative_error);
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
  ASSERT_EQ(e->settings.size(), 2U);
  EXPECT_EQ(e->settings[1].setting.sm, megahertz(1000)) << "in order of first use";
  EXPECT_NEAR(e->settings[1].time_ratio, 1.2, 1e-9);
  EXPECT_NEAR(e->settings[1].energy_ratio, 0.75, 1e-9);
  EXPECT_NEAR(e->settings[0].time_ratio, 1.05, 1e-9);
  EXPECT_GT(e->settings[0].time_error, 0.002 * 1.05)
      << "the baseline's error and drift come on top";
  EXPECT_LT(e->settings[0].time_error, 0.01);
}

// The job slows down by 3 % for reasons of its own; each probe lies beside its own baseline.
TEST(Estimates, DriftOfTheBaselineIsNoSlowDown) {
  const std::vector<Observation> seen = {window({}, 0, 1.00, 100), window(1200, 8, 1.00, 80),
                                         window({}, 600, 1.03, 103), window(1200, 608, 1.03, 82.4)};
  const auto e = estimate(seen);
  ASSERT_TRUE(e);
  EXPECT_NEAR(e->settings[0].time_ratio, 1.0, 0.012) << "half of the drift would be 0.015";
  EXPECT_NEAR(e->settings[0].energy_ratio, 0.8, 0.012);
}

TEST(Estimates, MoreWindowsAreSurerAndFarOnesLessSo) {
  std::vector<Observation> seen = {window({}, 0, 1, 100), window(1200, 10, 1.02, 80)};
  const double one = estimate(seen)->settings[0].time_error;
  seen.push_back(window(1200, 12, 1.02, 80));
  EXPECT_LT(estimate(seen)->settings[0].time_error, one);
  const std::vector<Observation> far = {window({}, 0, 1, 100), window(1200, 1000, 1.02, 80)};
  EXPECT_GT(estimate(far)->settings[0].time_error, one);
}

TEST(Estimates, HeldIsTheNewestWord) {
  std::vector<Observation> seen = {window({}, 0, 1, 100), window(1200, 10, 1.02, 80)};
  seen.back().held = false;
  EXPECT_FALSE(estimate(seen)->settings[0].held);
  seen.push_back(window(1200, 20, 1.02, 80));
  EXPECT_TRUE(estimate(seen)->settings[0].held);
}

TEST(Estimates, AMemoryClockAndAPowerLimitAreSettingsOfTheirOwn) {
  std::vector<Observation> seen = {window({}, 0, 1, 100), window(1200, 10, 1.02, 80),
                                   window(1200, 20, 1.10, 70), window({}, 30, 1.03, 85)};
  seen[2].setting.memory = megahertz(810);
  seen[3].setting.power_limit = Watts(200);
  const auto e = estimate(seen);
  ASSERT_EQ(e->settings.size(), 3U);
  EXPECT_EQ(e->baselines, 1U);
  EXPECT_EQ(e->settings[1].setting.memory, megahertz(810));
  EXPECT_NEAR(e->settings[1].energy_ratio, 0.70, 1e-9);
  EXPECT_NEAR(e->settings[2].time_ratio, 1.03, 1e-9);
}

}  // namespace
}  // namespace gpoeo::policy
