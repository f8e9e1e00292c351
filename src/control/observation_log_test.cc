// SPDX-License-Identifier: Apache-2.0
#include "control/observation_log.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gpoeo::control {
namespace {

policy::Observation look(double mhz, double at_s) {
  policy::Observation o;
  if (mhz > 0) o.setting.sm = megahertz(mhz);
  o.at = Seconds(at_s);
  return o;
}

// A day of holding, and then a clock that was never tried: its look must be there afterwards.
TEST(ObservationLog, TheNewestLookAlwaysStays) {
  std::vector<policy::Observation> log;
  add_bounded(log, look(0, 0), 50);
  for (int i = 1; i < 500; ++i) add_bounded(log, look(1200, i), 50);
  EXPECT_EQ(log.size(), 50U);
  EXPECT_TRUE(log.front().setting.is_default()) << "the baseline stays";
  EXPECT_EQ(log[1].at, Seconds(1));
  EXPECT_EQ(log[2].at, Seconds(2)) << "and so do the first looks";
  EXPECT_EQ(log.back().at, Seconds(499));
  add_bounded(log, look(1185, 500), 50);
  EXPECT_EQ(log.size(), 50U);
  EXPECT_EQ(log.back().setting.sm, megahertz(1185));
}

TEST(ObservationLog, BoundedHoweverManySettings) {
  std::vector<policy::Observation> log;
  for (int i = 0; i < 200; ++i) add_bounded(log, look(300 + i, i), 20);
  EXPECT_EQ(log.size(), 20U);
  EXPECT_EQ(log.back().at, Seconds(199));
}

}  // namespace
}  // namespace gpoeo::control
