// SPDX-License-Identifier: Apache-2.0
#include "policy/evidence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "policy/testing/looks.h"

namespace gpoeo::policy {
namespace {

using testing::a100;
using testing::look;

const std::vector<Candidate>& candidates() {
  static const auto all = candidates_of(a100(), std::nullopt);
  return all;
}

TEST(Gather, NeighboursAtOneSettingAreOneBlock) {
  const std::vector<Observation> seen = {look({}, 5, 0.1, 10), look(1200, 20, 0.104, 8),
                                         look(1200, 23, 0.106, 8), look({}, 40, 0.1, 10)};
  const auto log = gather(candidates(), seen);
  ASSERT_EQ(log.blocks.size(), 3U);
  EXPECT_NEAR(std::exp(log.blocks[1].log_time), 0.105, 1e-4);
  EXPECT_NEAR(log.blocks[1].at_s, 21.5, 0.1);
  EXPECT_LT(log.blocks[1].time_variance, log.blocks[0].time_variance);
  EXPECT_EQ(log.baselines, 2U);
  EXPECT_EQ(log.last_baseline_s, 40);
  EXPECT_EQ(log.probes, 1U);
  EXPECT_EQ(log.looks[log.blocks[1].candidate].windows, 2U);
}

TEST(Gather, StaysBoundedOverADay) {
  std::vector<Observation> seen;
  for (int i = 0; i < 5000; ++i) {
    seen.push_back(i % 50 == 0 ? look({}, 17.0 * i, 0.1, 10)
                               : look(i % 100 < 50 ? 1200 : 1185, 17.0 * i, 0.105, 8));
  }
  const auto log = gather(candidates(), seen);
  EXPECT_LE(log.blocks.size(), kMostBlocks);
  EXPECT_EQ(log.blocks.front().candidate, 0U) << "the first baseline stays";
  for (std::size_t i = 1; i < log.blocks.size(); ++i) {
    EXPECT_GE(log.blocks[i].at_s, log.blocks[i - 1].at_s);
  }
}

TEST(Gather, WhatIsNoNumberIsLeftOut) {
  std::vector<Observation> seen = {look({}, 5, 1, 100), look(1200, 20, 1, 80),
                                   look(1200, 30, 1, 80), look(1200, 40, 1, 80)};
  seen[1].time = Seconds(std::numeric_limits<double>::quiet_NaN());
  seen[2].energy = Joules(0);
  seen[3].time = Seconds(-1);
  const auto log = gather(candidates(), seen);
  EXPECT_EQ(log.blocks.size(), 1U);
  EXPECT_EQ(log.probes, 0U);
}

TEST(Gather, AClockThatIsNotListedCountsForTheNearest) {
  const std::vector<Observation> seen = {look({}, 5, 1, 100), look(1207, 20, 1, 80)};
  const auto log = gather(candidates(), seen);
  ASSERT_EQ(log.blocks.size(), 2U);
  EXPECT_EQ(candidates()[log.blocks[1].candidate].setting.sm, megahertz(1200));
  std::vector<Observation> other = seen;
  other[1].setting.memory = megahertz(810);
  EXPECT_EQ(gather(candidates(), other).blocks.size(), 1U) << "no candidate is like it";
}

}  // namespace
}  // namespace gpoeo::policy
