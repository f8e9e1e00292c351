// SPDX-License-Identifier: Apache-2.0
#include "control/known_work.h"

#include <gtest/gtest.h>

#include "control/testing/looks.h"

namespace gpoeo::control {
namespace {

using testing::look;

Work training() {
  return {.observations = {look({}, 0.50, 300), look(1200, 0.53, 230), look(1100, 0.56, 205)},
          .prior = {},
          .ledger_phase = 1};
}
Work validation() {
  return {
      .observations = {look({}, 0.20, 180), look(900, 0.21, 130)}, .prior = {}, .ledger_phase = 2};
}

TEST(KnownWork, ReturningWorkIsKnownAtASettingItHad) {
  KnownWork known;
  known.remember(training());
  known.remember(validation());
  const auto found = known.recall(look(900, 0.212, 131));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->ledger_phase, 2U);
  EXPECT_FALSE(known.recall(look(900, 0.212, 131))) << "it is the present work now";
}

TEST(KnownWork, AndBetweenTwoSettingsThatItHad) {
  KnownWork known;
  known.remember(training());
  EXPECT_FALSE(known.recall(look(1150, 0.60, 217))) << "too slow for it";
  const auto found = known.recall(look(1150, 0.545, 217));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->observations.size(), 3U);
}

TEST(KnownWork, OtherPowerIsOtherWork) {
  KnownWork known;
  known.remember(training());
  EXPECT_FALSE(known.recall(look({}, 0.50, 270)));
  EXPECT_FALSE(known.recall(look(1150, 0.545, 217, 810))) << "never seen at this memory clock";
  EXPECT_TRUE(known.recall(look({}, 0.505, 302)));
}

TEST(KnownWork, TheNearestOfSeveral) {
  KnownWork known;
  Work near = training();
  near.observations[0] = look({}, 0.51, 302);
  near.ledger_phase = 7;
  known.remember(training());
  known.remember(near);
  const auto found = known.recall(look({}, 0.511, 302));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->ledger_phase, 7U);
}

TEST(KnownWork, WithoutABaselineThereIsNothingToReturnTo) {
  KnownWork known;
  known.remember({.observations = {look(1200, 0.53, 230)}, .prior = {}, .ledger_phase = 0});
  EXPECT_FALSE(known.recall(look(1200, 0.53, 230)));
}

TEST(KnownWork, KeepsAFew) {
  KnownWork known;
  for (int i = 0; i < 20; ++i) {
    known.remember({.observations = {look({}, 1.0 + i, 100)},
                    .prior = {},
                    .ledger_phase = static_cast<std::size_t>(i)});
  }
  EXPECT_FALSE(known.recall(look({}, 1.0, 100)));
  EXPECT_TRUE(known.recall(look({}, 20.0, 100)));
}

}  // namespace
}  // namespace gpoeo::control
