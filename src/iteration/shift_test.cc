// SPDX-License-Identifier: Apache-2.0
#include "iteration/shift.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace gpoeo::iteration {
namespace {

// Feeds steady noise around levels, 50 samples a second, and keeps what the detector said.
class Feed {
 public:
  explicit Feed(std::size_t signals = 1) : detector(signals) {}

  void run(double seconds, std::vector<double> levels, double slope_per_s = 0) {
    for (const double end = now_s + seconds; now_s < end; now_s += 0.02) {
      std::vector<double> values;
      for (double& level : levels) {
        level += 0.02 * slope_per_s;
        values.push_back(level * (1 + 0.03 * normal(random)));
      }
      if (const auto shift = detector.push(now_s, values)) shifts.push_back(*shift);
    }
  }

  ShiftDetector detector;
  std::vector<Shift> shifts;
  double now_s = 0;
  std::mt19937_64 random{11};
  std::normal_distribution<double> normal;
};

TEST(ShiftDetector, NoticesOtherWorkWithinThreeSeconds) {
  Feed feed;
  feed.run(12, {500});
  const double truth_s = feed.now_s;
  feed.run(10, {600});
  ASSERT_EQ(feed.shifts.size(), 1U);
  EXPECT_NEAR(feed.shifts[0].began_s, truth_s, 1);
  EXPECT_LE(feed.shifts[0].noticed_s, truth_s + 3);
  EXPECT_EQ(feed.detector.phase(), 1U);
}

TEST(ShiftDetector, NoticesAShiftThatOnlyOneOfSeveralSignalsShows) {
  Feed feed(3);
  feed.run(12, {500, 80, 40});
  feed.run(10, {500, 80, 25});
  EXPECT_EQ(feed.shifts.size(), 1U);
}

TEST(ShiftDetector, IsQuietOnPausesAndCheckpoints) {
  Feed feed;
  feed.run(60, {500});
  for (int i = 0; i < 10; ++i) {
    feed.run(6, {400});  // validation
    feed.run(60, {500});
    feed.run(4, {140});  // checkpoint
    feed.run(60, {500});
  }
  EXPECT_TRUE(feed.shifts.empty());
  EXPECT_FALSE(feed.detector.away());
}

TEST(ShiftDetector, FollowsThermalDrift) {
  Feed feed;
  feed.run(600, {500}, 0.15);  // to 590 W
  EXPECT_TRUE(feed.shifts.empty());
}

TEST(ShiftDetector, IsQuietOnOurOwnClockChange) {
  Feed feed;
  feed.run(20, {500});
  feed.detector.on_clock_change(1200);
  feed.run(20, {380});
  feed.detector.on_clock_change(1980);
  feed.run(20, {500});
  EXPECT_TRUE(feed.shifts.empty());
  EXPECT_EQ(feed.detector.phase(), 0U);
}

TEST(ShiftDetector, RecognisesAPhaseThatReturns) {
  Feed feed;
  feed.run(30, {500});
  feed.run(30, {300});
  feed.run(30, {500});
  feed.run(30, {650});
  ASSERT_EQ(feed.shifts.size(), 3U);
  EXPECT_FALSE(feed.shifts[0].known);
  EXPECT_TRUE(feed.shifts[1].known);
  EXPECT_EQ(feed.shifts[1].phase, 0U);
  EXPECT_FALSE(feed.shifts[2].known);
  EXPECT_EQ(feed.shifts[2].phase, 2U);
}

TEST(ShiftDetector, KeepsSignaturesApartForEachClock) {
  Feed feed;
  feed.run(20, {500});
  feed.detector.on_clock_change(1200);
  feed.run(20, {300});
  feed.run(20, {500});  // as the first phase at the other clock, but it is other work
  ASSERT_EQ(feed.shifts.size(), 1U);
  EXPECT_FALSE(feed.shifts[0].known);
}

TEST(ShiftDetector, DropsSamplesThatCannotBe) {
  Feed feed;
  feed.run(10, {500});
  const std::vector<double> nan = {std::numeric_limits<double>::quiet_NaN()}, two = {1, 2},
                            far = {1e9};
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(feed.detector.push(feed.now_s, nan));
    EXPECT_FALSE(feed.detector.push(feed.now_s, two));
    EXPECT_FALSE(feed.detector.push(-1, far));
    EXPECT_FALSE(feed.detector.push(std::numeric_limits<double>::infinity(), far));
  }
  feed.run(10, {500});
  EXPECT_TRUE(feed.shifts.empty());
}

}  // namespace
}  // namespace gpoeo::iteration
