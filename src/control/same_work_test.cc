// SPDX-License-Identifier: Apache-2.0
#include "control/same_work.h"

#include <gtest/gtest.h>

#include "control/testing/looks.h"

namespace gpoeo::control {
namespace {

using testing::look;

// A card of 1410 MHz at default.
const std::vector<Hertz> kClocks{megahertz(705), megahertz(1005), megahertz(1410)};

bool same(const policy::Observation& now, std::vector<policy::Observation> before) {
  return same_work(now, before, kClocks);
}

TEST(SameWork, NothingIsKnownOfIt) { EXPECT_TRUE(same(look({}, 1.0, 200), {})); }

TEST(SameWork, NoiseAtOneClockIsNoOtherWork) {
  const auto before = look({}, 1.0, 200);
  EXPECT_TRUE(same(look({}, 1.1, 200), {before}));
  EXPECT_TRUE(same(look({}, 0.9, 200), {before}));
  EXPECT_FALSE(same(look({}, 1.2, 200), {before}));
  EXPECT_FALSE(same(look({}, 0.8, 200), {before}));
}

TEST(SameWork, PowerTellsToo) {
  EXPECT_FALSE(same(look(1005, 1.0, 170), {look({}, 1.0, 200), look(1005, 1.0, 140)}));
  EXPECT_TRUE(same(look(1005, 1.0, 150), {look({}, 1.0, 200), look(1005, 1.0, 140)}));
}

TEST(SameWork, AVagueWindowTellsLittle) {
  auto vague = look({}, 1.2, 200);
  vague.time_error = Seconds(0.05);
  vague.energy_error = Joules(10);
  EXPECT_TRUE(same(vague, {look({}, 1.0, 200)}));
}

TEST(SameWork, NoClockMakesIterationsShorter) {
  EXPECT_FALSE(same(look(1005, 0.9, 150), {look({}, 1.0, 200)}));
  EXPECT_TRUE(same(look(1005, 0.97, 150), {look({}, 1.0, 200)})) << "within the margin";
}

TEST(SameWork, NorLongerByMoreThanTheClockIsLower) {
  // 1410 / 1005 = 1.403.
  EXPECT_TRUE(same(look(1005, 1.42, 150), {look({}, 1.0, 200)}));
  EXPECT_FALSE(same(look(1005, 1.5, 150), {look({}, 1.0, 200)}));
  EXPECT_TRUE(same(look(1005, 1.5, 150, 810), {look({}, 1.0, 200)}))
      << "what a slow memory clock may do is not known";
}

// A job that drifted is compared with how it was at default clocks last.
TEST(SameWork, TheNewestBaselineCounts) {
  EXPECT_TRUE(same(look(1005, 0.9, 150), {look({}, 1.0, 200), look({}, 0.89, 200)}));
  EXPECT_FALSE(same(look(1005, 0.9, 150), {look({}, 0.89, 200), look({}, 1.0, 200)}));
}

TEST(SameWork, WithoutABaselineOrClocksOnlyTheSameSettingIsCompared) {
  EXPECT_TRUE(same(look(1005, 0.5, 150), {look(705, 1.0, 100)}));
  EXPECT_TRUE(same_work(look(1005, 0.5, 150), std::vector{look({}, 1.0, 200)}, {}));
}

}  // namespace
}  // namespace gpoeo::control
