// SPDX-License-Identifier: Apache-2.0
#include "telemetry/counter_average.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace gpoeo::telemetry {
namespace {

using ::testing::HasSubstr;

Instant at(double s) { return Instant{} + to_duration(Seconds(1000 + s)); }

std::vector<Instant> ends_each(double period_s, double until_s, double from_s = 0) {
  std::vector<Instant> ends;
  for (double t = from_s; t <= until_s; t += period_s) ends.push_back(at(t));
  return ends;
}

// Each iteration: SMs busy for its first `share`.
double busy_until(double t, double period, double share) {
  const double whole = std::floor(t / period);
  return (whole * share + std::min(t / period - whole, share)) * period;
}

TimeRing<CountersPoint> readings_of(double period, double share, double each, double until,
                                    double offset = 0) {
  TimeRing<CountersPoint> ring(1024);
  for (double t = offset; t + each <= until; t += each) {
    gpu::Counters c;
    c.window = Seconds(each);
    c.sm_active = (busy_until(t + each, period, share) - busy_until(t, period, share)) / each;
    ring.push({at(t + each), c});
  }
  return ring;
}

TEST(CounterAverage, OfManyIterationsIsTheirMean) {
  for (const double offset : {0.0, 0.03, 0.11}) {
    const auto mean =
        average_counters(readings_of(0.37, 0.6, 0.2, 10, offset), ends_each(0.37, 10));
    ASSERT_TRUE(mean) << mean.error().text;
    EXPECT_NEAR(*mean->activity.sm_active, 0.6, 0.006) << offset;
    EXPECT_LT(mean->remainder, 0.005) << offset;
    EXPECT_GT(mean->iterations, 15) << offset;
    EXPECT_FALSE(mean->activity.dram_active) << "what no reading has stays absent";
  }
}

// Three iterations of 3 s: a window that is not whole would be off by up to a third.
TEST(CounterAverage, TakesTheStretchThatIsWhole) {
  for (const double offset : {0.0, 0.07, 0.13, 0.19}) {
    const auto mean = average_counters(readings_of(3, 0.5, 0.2, 11, offset), ends_each(3, 10));
    ASSERT_TRUE(mean);
    EXPECT_NEAR(*mean->activity.sm_active, 0.5, 0.02) << offset;
    EXPECT_NEAR(mean->iterations, std::round(mean->iterations), 0.1) << offset;
  }
}

TEST(CounterAverage, ReadingsBeforeAndBehindDoNotCount) {
  auto ring = readings_of(0.5, 0.4, 0.2, 10);
  gpu::Counters other;
  other.window = Seconds(5);
  other.sm_active = 1;
  TimeRing<CountersPoint> all(1024);
  all.push({at(0.05), other});  // began long before the first end
  for (std::size_t i = 0; i < ring.size(); ++i) all.push(ring[i]);
  all.push({at(15.1), other});
  const auto mean = average_counters(all, ends_each(0.5, 10));
  ASSERT_TRUE(mean);
  EXPECT_NEAR(*mean->activity.sm_active, 0.4, 0.01);
}

// What an H200 shows now and then, and what no hardware can.
TEST(CounterAverage, ImplausibleValuesAreLeftOut) {
  auto ring = readings_of(0.5, 0.4, 0.2, 10);
  TimeRing<CountersPoint> all(1024);
  for (std::size_t i = 0; i < ring.size(); ++i) {
    CountersPoint point = ring[i];
    if (i % 3 == 0) point.counters.dram_active = std::numeric_limits<double>::quiet_NaN();
    if (i % 3 == 1) point.counters.dram_active = -1;
    if (i % 3 == 2) point.counters.dram_active = 17;
    point.counters.gr_active = 1.03;  // the two samples' timing
    all.push(point);
  }
  const auto mean = average_counters(all, ends_each(0.5, 10));
  ASSERT_TRUE(mean);
  EXPECT_FALSE(mean->activity.dram_active);
  EXPECT_EQ(mean->activity.gr_active, 1);
}

TEST(CounterAverage, NothingInsideOrNothingPlausibleIsAnError) {
  const auto none = average_counters(TimeRing<CountersPoint>(8), ends_each(0.5, 10));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::kNotFound);

  TimeRing<CountersPoint> bad(64);
  for (double t = 0; t < 5; t += 0.2) {
    gpu::Counters c;
    c.window = Seconds(0.2);
    c.sm_active = std::numeric_limits<double>::quiet_NaN();
    bad.push({at(t + 0.2), c});
  }
  EXPECT_FALSE(average_counters(bad, ends_each(0.5, 10)));
}

TEST(CounterAverage, CountersThatDoNotMoveAreAnError) {
  const auto constant = [](double value) {
    TimeRing<CountersPoint> ring(64);
    for (double t = 0; t < 8; t += 0.2) {
      gpu::Counters c;
      c.window = Seconds(0.2);
      c.sm_active = value;
      ring.push({at(t + 0.2), c});
    }
    return average_counters(ring, ends_each(0.5, 8));
  };
  const auto stuck = constant(0.42);
  ASSERT_FALSE(stuck);
  EXPECT_THAT(stuck.error().text, HasSubstr("do not move"));
  // A saturated or an idle unit does read the same each time.
  EXPECT_EQ(constant(1)->activity.sm_active, 1);
  EXPECT_EQ(constant(0)->activity.sm_active, 0);
}

}  // namespace
}  // namespace gpoeo::telemetry
