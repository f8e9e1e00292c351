// SPDX-License-Identifier: Apache-2.0
#include "control/setting_spans.h"

#include <gtest/gtest.h>

namespace gpoeo::control {
namespace {

Instant at(double s) { return instant_from_ns(1'000'000'000'000) + to_duration(Seconds(s)); }
policy::ClockSetting sm(double mhz) { return {.sm = megahertz(mhz)}; }

TEST(SettingSpans, NothingBeforeTheyBegin) {
  SettingSpans spans;
  spans.set(sm(1200), at(1));
  spans.idle(true, at(2));
  spans.enter_phase(1, at(3));
  EXPECT_FALSE(spans.begun());
  EXPECT_TRUE(spans.until(at(5)).empty());
}

TEST(SettingSpans, EachSettingHasItsTime) {
  SettingSpans spans;
  spans.begin(at(0));
  spans.set(sm(1200), at(10));
  spans.set(sm(1200), at(15));
  spans.set({}, at(30));
  const auto all = spans.until(at(40));
  ASSERT_EQ(all.size(), 3U);
  EXPECT_TRUE(all[0].setting.is_default());
  EXPECT_EQ(all[0].to, at(10));
  EXPECT_EQ(all[1].setting, sm(1200));
  EXPECT_EQ(all[1].from, at(10));
  EXPECT_EQ(all[1].to, at(30)) << "the same setting again is no new span";
  EXPECT_EQ(all[2].to, at(40));
}

TEST(SettingSpans, IdlenessIsSetApart) {
  SettingSpans spans;
  spans.begin(at(0));
  spans.set(sm(1200), at(10));
  spans.idle(true, at(20));
  spans.idle(false, at(50));
  const auto all = spans.until(at(60));
  ASSERT_EQ(all.size(), 4U);
  EXPECT_TRUE(all[2].idle);
  EXPECT_EQ(all[2].setting, sm(1200));
  EXPECT_FALSE(all[3].idle);
  EXPECT_EQ(all[3].from, at(50));
}

TEST(SettingSpans, OtherWorkIsPutWhereItBegan) {
  SettingSpans spans;
  spans.begin(at(0));
  spans.set(sm(1200), at(10));
  spans.enter_phase(1, at(25));  // noticed at 40
  spans.set({}, at(40));
  const auto all = spans.until(at(50));
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[1].phase, 0U);
  EXPECT_EQ(all[1].to, at(25));
  EXPECT_EQ(all[2].phase, 1U);
  EXPECT_EQ(all[2].setting, sm(1200));
  EXPECT_EQ(all[2].to, at(40));
  EXPECT_EQ(all[3].phase, 1U);
}

TEST(SettingSpans, WorkThatBeganBeforeAChangeOfClocks) {
  SettingSpans spans;
  spans.begin(at(0));
  spans.set(sm(1200), at(10));
  spans.set(sm(1000), at(20));
  spans.enter_phase(1, at(15));
  const auto all = spans.until(at(30));
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[1].phase, 0U);
  EXPECT_EQ(all[2].phase, 1U);
  EXPECT_EQ(all[2].from, at(15));
  EXPECT_EQ(all[3].phase, 1U);
  EXPECT_EQ(all[3].setting, sm(1000));
}

}  // namespace
}  // namespace gpoeo::control
