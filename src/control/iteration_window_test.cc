// SPDX-License-Identifier: Apache-2.0
#include "control/iteration_window.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gpoeo::control {
namespace {

Instant at(double s) { return instant_from_ns(1'000'000'000'000) + to_duration(Seconds(s)); }

// One after the other, so that a window never sees more than the loop would give it.
std::size_t feed(IterationWindow& window, double from_s, double each_s, int count,
                 double jitter = 0) {
  for (int i = 0; i < count; ++i) {
    const Instant end = at(from_s + i * each_s + (i % 2 == 0 ? jitter : -jitter));
    window.add(std::span(&end, 1));
    if (window.ready()) return static_cast<std::size_t>(i) + 1;
  }
  return static_cast<std::size_t>(count);
}

constexpr policy::MeasureGoal kGoal{
    .least_iterations = 8, .least = Seconds(3), .longest = Seconds(20), .precision = 0.003};

TEST(IterationWindow, ReadyWhenBothMinimaAreMet) {
  IterationWindow quick(kGoal, at(0));
  EXPECT_EQ(feed(quick, 0, 0.1, 1000), 31U) << "3 s of 0.1 s, and one end to open";
  IterationWindow slow(kGoal, at(0));
  EXPECT_EQ(feed(slow, 0, 1.0, 1000), 9U) << "8 iterations of 1 s";
}

TEST(IterationWindow, TheLongestTimeEndsItWhateverTheScatter) {
  IterationWindow window(kGoal, at(0));
  feed(window, 0, 0.5, 1000, 0.2);
  EXPECT_TRUE(window.ready());
  EXPECT_GE(to_seconds(window.ends().back() - window.ends().front()).value(), 20);
  EXPECT_LE(to_seconds(window.ends().back() - window.ends().front()).value(), 21);
}

TEST(IterationWindow, WaitsForPrecisionUnlessItIsZero) {
  IterationWindow exact(kGoal, at(0));
  IterationWindow any(
      {.least_iterations = 8, .least = Seconds(3), .longest = Seconds(20), .precision = 0}, at(0));
  EXPECT_GT(feed(exact, 0, 0.2, 1000, 0.02), feed(any, 0, 0.2, 1000, 0.02));
}

TEST(IterationWindow, EndsBeforeTheCardHadSettledDoNotCount) {
  IterationWindow window(kGoal, at(5));
  feed(window, 4.05, 0.1, 5);
  EXPECT_TRUE(window.ends().empty());
  feed(window, 5.05, 0.1, 5);
  EXPECT_EQ(window.ends().size(), 5U);
}

TEST(IterationWindow, RepeatedAndBackwardEndsAreLeftOut) {
  IterationWindow window(kGoal, at(0));
  const std::vector<Instant> ends = {at(1), at(2), at(2), at(1.5), at(3)};
  window.add(ends);
  EXPECT_EQ(window.ends().size(), 3U);
}

TEST(IterationWindow, APauseStartsItAnew) {
  IterationWindow window(kGoal, at(0));
  feed(window, 0, 0.2, 8);
  feed(window, 30, 0.2, 5);
  EXPECT_EQ(window.pauses(), 1U);
  EXPECT_EQ(window.ends().front(), at(30));
  EXPECT_FALSE(window.ready());
}

TEST(IterationWindow, APauseBehindAReadyWindowLeavesItAsItWas) {
  IterationWindow window(kGoal, at(0));
  feed(window, 0, 0.1, 31);
  ASSERT_TRUE(window.ready());
  const std::vector<Instant> late = {at(40), at(40.1)};
  window.add(late);
  EXPECT_LE(window.ends().back(), at(3.01));
  EXPECT_TRUE(window.ready());
}

TEST(IterationWindow, ShortHiccupsOfTinyIterationsAreNoPause) {
  IterationWindow window(kGoal, at(0));
  feed(window, 0, 0.01, 50);
  const Instant late = at(0.49 + 0.25);
  window.add(std::span(&late, 1));
  EXPECT_EQ(window.pauses(), 0U);
  EXPECT_EQ(window.ends().size(), 51U);
}

TEST(IterationWindow, RelativeErrorIsThatOfTheMean) {
  IterationWindow window(kGoal, at(0));
  const std::vector<Instant> four = {at(0), at(0.9), at(2.0), at(2.9)};
  window.add(four);
  EXPECT_FALSE(window.relative_error()) << "three iterations tell nothing";
  const Instant fifth = at(4.0);
  window.add(std::span(&fifth, 1));
  // 0.9 1.1 0.9 1.1: standard deviation 0.1155, over sqrt(4).
  ASSERT_TRUE(window.relative_error());
  EXPECT_NEAR(*window.relative_error(), 0.1155 / 2, 1e-3);
}

TEST(IterationWindow, SlowIterationsEndWithTwo) {
  IterationWindow window(kGoal, at(0));
  EXPECT_EQ(feed(window, 0, 30, 10), 3U);
}

}  // namespace
}  // namespace gpoeo::control
