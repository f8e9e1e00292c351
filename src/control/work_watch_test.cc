// SPDX-License-Identifier: Apache-2.0
#include "control/work_watch.h"

#include <gtest/gtest.h>

#include "control/testing/looks.h"

namespace gpoeo::control {
namespace {

using testing::look;
using Seen = WorkWatch::Seen;

Instant at(double s) { return instant_from_ns(1'000'000'000'000) + to_duration(Seconds(s)); }

std::vector<Instant> ends(double from_s, double each_s, int count) {
  std::vector<Instant> all;
  for (int i = 0; i < count; ++i) all.push_back(at(from_s + i * each_s));
  return all;
}

// Training at 1 s and 300 W; below 1410 MHz little slower.
class WorkWatchTest : public ::testing::Test {
 protected:
  WorkWatchTest() {
    watch.begin(7);
    for (const auto& window : {look({}, 1.0, 300), look(1200, 1.03, 230)}) {
      EXPECT_EQ(watch.judge(window, at(0)), Seen::kPresent);
      watch.add(window);
    }
    watch.expect({{.setting = {.sm = megahertz(1200)}, .time = 1.03, .energy = 0.8}});
  }
  // Other work comes and is measured at default clocks.
  void validate(double at_s) {
    ASSERT_EQ(watch.judge(look(1200, 0.4, 150), at(at_s)), Seen::kNew);
    watch.begin(8);
    ASSERT_EQ(watch.judge(look({}, 0.39, 170), at(at_s)), Seen::kPresent);
    watch.add(look({}, 0.39, 170));
  }
  WorkWatch watch{{megahertz(210), megahertz(1200), megahertz(1410)}};
};

TEST_F(WorkWatchTest, WhatFitsIsOfThePresentWork) {
  EXPECT_EQ(watch.judge(look(1200, 1.04, 232), at(10)), Seen::kPresent);
  EXPECT_EQ(watch.observations().size(), 2U) << "to judge is not to add";
  EXPECT_EQ(watch.ledger_phase(), 7U);
  EXPECT_EQ(watch.changes(), 0U);
}

TEST_F(WorkWatchTest, WhatDoesNotFitIsNewWork) {
  EXPECT_EQ(watch.judge(look(1200, 0.4, 150), at(10)), Seen::kNew);
  EXPECT_TRUE(watch.observations().empty());
  EXPECT_TRUE(watch.prior().empty());
  EXPECT_EQ(watch.changes(), 1U);
  watch.begin(8);
  EXPECT_EQ(watch.ledger_phase(), 8U);
}

TEST_F(WorkWatchTest, WorkThatReturnsBringsAllItHad) {
  validate(10);
  EXPECT_EQ(watch.judge(look({}, 1.01, 302), at(20)), Seen::kReturned);
  EXPECT_EQ(watch.observations().size(), 2U);
  EXPECT_EQ(watch.prior().size(), 1U);
  EXPECT_EQ(watch.ledger_phase(), 7U);
  EXPECT_EQ(watch.changes(), 1U) << "a return is no new work";
  // And the other way round.
  EXPECT_EQ(watch.judge(look({}, 0.39, 171), at(30)), Seen::kReturned);
  EXPECT_EQ(watch.ledger_phase(), 8U);
}

TEST_F(WorkWatchTest, UnknownAtTheClockHeldItMayBeKnownAtDefaultClocks) {
  validate(10);
  // At a clock that training was never seen at, nor between two that it was.
  EXPECT_EQ(watch.judge(look(705, 2.0, 100), at(20)), Seen::kNew);
  watch.begin(9);
  EXPECT_EQ(watch.judge(look({}, 1.01, 302), at(25)), Seen::kReturned);
  EXPECT_EQ(watch.ledger_phase(), 7U);
}

TEST_F(WorkWatchTest, AFewIterationsAreEnoughToKnowItBy) {
  const auto few = ends(0, 1, 5), enough = ends(0, 1, 9);
  EXPECT_TRUE(watch.enough_to_recognise(enough).empty()) << "nothing was put aside yet";
  validate(10);
  EXPECT_TRUE(watch.enough_to_recognise(few).empty());
  const auto newest = watch.enough_to_recognise(enough);
  ASSERT_EQ(newest.size(), 5U);
  EXPECT_EQ(newest.back(), enough.back());
  EXPECT_FALSE(watch.recall(look({}, 0.7, 240)));
  EXPECT_TRUE(watch.recall(look({}, 1.01, 302)));
  EXPECT_EQ(watch.ledger_phase(), 7U);
}

// Times over a reference of each work's own do not compare.
TEST_F(WorkWatchTest, NothingIsKnownAgainWhereItIsSwitchedOff) {
  watch.recognise(false);
  validate(10);
  EXPECT_TRUE(watch.enough_to_recognise(ends(0, 1, 9)).empty());
  EXPECT_EQ(watch.judge(look({}, 1.0, 300), at(20)), Seen::kNew);
  // What was measured while it was off is not known afterwards either.
  watch.recognise(true);
  watch.begin(9);
  EXPECT_EQ(watch.judge(look({}, 0.39, 170), at(30)), Seen::kPresent);
  EXPECT_TRUE(watch.observations().empty());
}

TEST_F(WorkWatchTest, LooksAreDueNowAndThenAndOnlyAtWhatIsNew) {
  const auto all = ends(0, 0.1, 101);  // to 10 s
  const auto newest = watch.look_due(all, at(10));
  ASSERT_FALSE(newest.empty());
  EXPECT_EQ(newest.front(), at(8.5));
  EXPECT_EQ(newest.back(), at(10));
  EXPECT_TRUE(watch.look_due(ends(0, 1, 3), at(3)).empty()) << "too few";
  EXPECT_EQ(watch.look_due(ends(0, 5, 9), at(40)).size(), 4U) << "long iterations";
  EXPECT_EQ(watch.judge_look(look(1200, 1.03, 231), newest.front(), at(10)).seen, Seen::kPresent);
  EXPECT_TRUE(watch.look_due(all, at(11)).empty()) << "just looked";
  EXPECT_FALSE(watch.look_due(ends(2, 0.1, 101), at(12)).empty());
}

TEST_F(WorkWatchTest, NoLookWithoutAnythingToCompareWith) {
  watch.begin(8);
  EXPECT_TRUE(watch.look_due(ends(0, 0.1, 101), at(10)).empty());
}

TEST_F(WorkWatchTest, TwoOddLooksInARowAreOtherWorkSinceTheFirst) {
  const auto odd = look(1200, 0.4, 150);
  EXPECT_EQ(watch.judge_look(odd, at(8), at(10)).seen, Seen::kPresent);
  EXPECT_EQ(watch.judge_look(odd, at(7), at(10.5)).seen, Seen::kPresent) << "the same stretch";
  const auto second = watch.judge_look(odd, at(10), at(12));
  EXPECT_EQ(second.seen, Seen::kNew);
  EXPECT_EQ(second.began, at(8));
}

TEST_F(WorkWatchTest, OneOddLookIsAHiccup) {
  const auto odd = look(1200, 0.4, 150);
  const auto usual = look(1200, 1.03, 230);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(watch.judge_look(odd, at(10 * i), at(10 * i + 2)).seen, Seen::kPresent);
    if (i % 2 == 0) {
      EXPECT_EQ(watch.judge_look(usual, at(10 * i + 2), at(10 * i + 4)).seen, Seen::kPresent);
    } else {
      watch.window_opens();
    }
  }
  EXPECT_EQ(watch.changes(), 0U);
}

TEST_F(WorkWatchTest, TooManyChangesWithinTenMinutesAreUnsteady) {
  double time_s = 1.0;
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(watch.unsteady(at(60 * i))) << i;
    time_s *= 2;
    EXPECT_EQ(watch.judge(look({}, time_s, 300), at(60 * i)), Seen::kNew);
    watch.begin(10);
    watch.add(look({}, time_s, 300));
  }
  EXPECT_TRUE(watch.unsteady(at(200)));
  EXPECT_FALSE(watch.unsteady(at(900))) << "long ago";
  EXPECT_EQ(watch.changes(), 4U);
}

}  // namespace
}  // namespace gpoeo::control
