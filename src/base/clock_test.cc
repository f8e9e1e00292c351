// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <gtest/gtest.h>

#include <thread>

namespace gpoeo {
namespace {

using std::chrono::milliseconds;

TEST(VirtualClock, SleepingIsAdvancingAndNeverGoesBack) {
  VirtualClock clock;
  const StopFlag stop;
  const Instant start = clock.now();
  clock.sleep_until(start + milliseconds(1500), stop);
  EXPECT_DOUBLE_EQ(to_seconds(clock.now() - start).value(), 1.5);
  clock.sleep_until(start, stop);
  EXPECT_EQ(clock.now(), start + milliseconds(1500));
}

TEST(RealClock, StopEndsASleepThatHasNotStarted) {
  RealClock clock;
  StopFlag stop;
  stop.request();
  const Instant start = clock.now();
  clock.sleep_until(start + std::chrono::hours(1), stop);
  EXPECT_LT(clock.now() - start, std::chrono::minutes(1));
}

TEST(RealClock, StopFromAnotherThreadWakesASleeper) {
  RealClock clock;
  StopFlag stop;
  const Instant start = clock.now();
  std::thread other([&] { stop.request(); });
  clock.sleep_until(start + std::chrono::hours(1), stop);
  other.join();
  EXPECT_LT(clock.now() - start, std::chrono::minutes(1));
}

TEST(Duration, RoundsSecondsToTheNearestNanosecond) {
  EXPECT_EQ(to_duration(Seconds(0.1)).count(), 100'000'000);
  EXPECT_EQ(to_duration(Seconds(-0.1)).count(), -100'000'000);
}

}  // namespace
}  // namespace gpoeo
