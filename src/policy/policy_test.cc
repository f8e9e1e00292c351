// SPDX-License-Identifier: Apache-2.0
// Policies by name, and those that choose nothing.
#include "policy/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/fixed.h"
#include "policy/testing/looks.h"

namespace gpoeo::policy {
namespace {

using testing::a100;
using ::testing::HasSubstr;
using testing::look;

TEST(MakePolicy, KnowsItsNamesAndListsThem) {
  EXPECT_EQ((*make_policy("gpoeo"))->name(), "gpoeo");
  EXPECT_EQ((*make_policy("default"))->name(), "default");
  EXPECT_EQ((*make_policy("static:1200"))->name(), "static");
  for (const char* bad : {"static:", "static:0", "static:-5", "static:x", "static:nan"}) {
    const auto policy = make_policy(bad);
    ASSERT_FALSE(policy) << bad;
    EXPECT_THAT(policy.error().text, HasSubstr("static:1200")) << bad;
  }
  const auto unknown = make_policy("best");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().text, HasSubstr("default, static:MHz"));
}

TEST(FixedPolicies, DefaultNeverSets) {
  const DefaultClocks policy;
  const std::vector<Observation> some = {look({}, 0, 1, 100), look({}, 20, 1, 100)};
  EXPECT_TRUE(policy.decide(a100(), {}).setting.is_default());
  EXPECT_TRUE(policy.decide(a100(), some).setting.is_default());
}

TEST(FixedPolicies, StaticMeasuresThenHoldsTheNearestClock) {
  const StaticClock policy(megahertz(1203));
  const Decision first = policy.decide(a100(), {});
  EXPECT_EQ(first.purpose, Purpose::kBaseline);
  EXPECT_TRUE(first.setting.is_default());
  const std::vector<Observation> one = {look({}, 0, 1, 100)};
  const Decision then = policy.decide(a100(), one);
  EXPECT_EQ(then.purpose, Purpose::kHold);
  EXPECT_EQ(then.setting.sm, megahertz(1200));
  EXPECT_EQ(policy.decide({}, one).purpose, Purpose::kLeave) << "no clocks to choose from";
}

}  // namespace
}  // namespace gpoeo::policy
