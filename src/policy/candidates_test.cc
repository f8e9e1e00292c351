// SPDX-License-Identifier: Apache-2.0
#include "policy/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "policy/testing/looks.h"

namespace gpoeo::policy {
namespace {

using testing::a100;
using testing::look;
using testing::with_memory_clocks;

TEST(Candidates, DefaultFirstThenFallingLevels) {
  const auto all = candidates_of(a100(), std::nullopt);
  ASSERT_GT(all.size(), 50U);
  EXPECT_TRUE(all.front().setting.is_default());
  EXPECT_EQ(all[1].setting.sm, megahertz(1395));
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_LT(all[i].level, all[i - 1].level);
  EXPECT_GE(all.back().level, 0.3);
}

TEST(Candidates, NothingToChooseFrom) {
  EXPECT_TRUE(candidates_of({}, std::nullopt).empty());
  EXPECT_TRUE(candidates_of({.sm_clocks = {megahertz(900), megahertz(1410)}}, {}).empty());
  const PowerLimitRange fixed{.lowest = Watts(300), .highest = Watts(300)};
  EXPECT_TRUE(candidates_of({.power = fixed}, {}).empty());
}

// A power cap holds the card at 1200 MHz by default: asking for 1300 is asking for nothing.
TEST(Candidates, LevelsCountFromWhatTheCardReaches) {
  const auto all = candidates_of(a100(), megahertz(1200));
  for (const auto& c : all) {
    if (c.setting.sm) {
      EXPECT_LT(*c.setting.sm, megahertz(1200)) << to_string(c.setting);
    }
  }
  EXPECT_NEAR(all[1].level, 1185.0 / 1200, 1e-9);
}

TEST(Candidates, MemoryClocksThatAreOneStayOne) {
  const auto all = candidates_of(with_memory_clocks(), std::nullopt);
  std::set<double> memory;
  for (const auto& c : all) {
    if (!c.setting.memory) continue;
    memory.insert(to_mhz(*c.setting.memory));
    EXPECT_NEAR(c.gear, std::log(9501.0 / to_mhz(*c.setting.memory)), 1e-9);
    EXPECT_GT(c.line, 0U);
  }
  EXPECT_EQ(memory, (std::set<double>{5001, 810})) << "9251 MHz is 9501 MHz";
  const auto top = std::ranges::find_if(all, [](const auto& c) { return c.line == 1; });
  EXPECT_EQ(top->setting.sm, megahertz(1410)) << "a memory clock alone is a setting";
}

TEST(Candidates, PowerLimitsWhereNothingElseCanBeSet) {
  const PowerLimitRange range{.lowest = Watts(100), .highest = Watts(300)};
  const auto all = candidates_of({.power = range}, std::nullopt);
  ASSERT_GT(all.size(), 10U);
  for (std::size_t i = 1; i < all.size(); ++i) {
    ASSERT_TRUE(all[i].setting.power_limit);
    EXPECT_GE(*all[i].setting.power_limit, range.lowest);
    EXPECT_LT(*all[i].setting.power_limit, range.highest);
    EXPECT_FALSE(all[i].setting.sm);
  }
  const PowerLimitRange narrow{.lowest = Watts(100.4), .highest = Watts(110)};
  const auto few = candidates_of({.power = narrow}, std::nullopt);
  for (std::size_t i = 1; i < few.size(); ++i) {
    EXPECT_GE(*few[i].setting.power_limit, narrow.lowest) << "never below what the card takes";
    EXPECT_LT(few[i].level, few[i - 1].level) << "no limit twice";
  }
  Problem both = a100();
  both.power = range;
  for (const auto& c : candidates_of(both, std::nullopt)) EXPECT_FALSE(c.setting.power_limit);
}

TEST(Candidates, ManyClocksAreThinnedOut) {
  Problem fine;
  for (int mhz = 200; mhz <= 2000; ++mhz) fine.sm_clocks.push_back(megahertz(mhz));
  EXPECT_LE(candidates_of(fine, std::nullopt).size(), 110U);
}

TEST(DefaultSmClock, IsTheMeanOverBaselinesOnly) {
  std::vector<Observation> seen = {look({}, 0, 1, 100), look(900, 10, 1, 100),
                                   look({}, 20, 1, 100)};
  EXPECT_FALSE(default_sm_clock(seen));
  seen[0].sm_clock = megahertz(1400);
  seen[1].sm_clock = megahertz(900);
  seen[2].sm_clock = megahertz(1300);
  EXPECT_NEAR(to_mhz(*default_sm_clock(seen)), 1350, 1e-6);
}

}  // namespace
}  // namespace gpoeo::policy
