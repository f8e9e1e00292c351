// SPDX-License-Identifier: Apache-2.0
#include "telemetry/tick_clock.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gpoeo::telemetry {
namespace {

constexpr double kPower = 300;

// A counter at constant power that moves at phase + n * period.
struct Counter {
  double period_s = 0.1;
  double phase_s = 0.0;
  double tick_before(double t_s) const {
    return phase_s + std::floor((t_s - phase_s) / period_s) * period_s;
  }
  CounterReading read(double t_s, double cost_s = 0) const {
    const double latched = t_s + cost_s / 2;
    return {at(t_s), at(t_s + cost_s), Joules(1000 + kPower * tick_before(latched))};
  }
  static Instant at(double t_s) { return instant_from_ns(static_cast<std::int64_t>(t_s * 1e9)); }
};
// Polls exactly in step with the ticks learn nothing; the sampler avoids them, and so do we.
double dither(int k) { return 0.8 + 0.4 * (k * 0.618034 - std::floor(k * 0.618034)); }
double seconds(Instant t) { return static_cast<double>(to_unix_ns(t)) * 1e-9; }

TEST(TickClock, FindsPeriodAndPhaseForManyPhasesAndPollRates) {
  for (const double period_s : {0.02, 0.1, 0.0913}) {
    for (double gap_s : {0.005, 0.0073, 0.01, 0.02, 0.033, 0.047}) {
      if (gap_s > period_s * 0.55) continue;
      for (int k = 0; k < 20; ++k) {
        const Counter counter{period_s, period_s * k / 20.0 + 0.0003};
        TickClock ticks(Watts(3000));
        int poll = 0;
        for (double t = 10; t < 14; t += gap_s * dither(poll++)) ticks.add(counter.read(t));
        ASSERT_TRUE(ticks.period()) << period_s << " " << gap_s << " phase " << k;
        EXPECT_NEAR(to_seconds(*ticks.period()).value(), period_s, 0.006 * period_s)
            << period_s << " " << gap_s << " phase " << k;
        const Tick next = *ticks.next_after(Counter::at(14.5));
        const double truth_s = counter.tick_before(14.5) + period_s;
        // Modulo one period: a prediction at the border may name the neighbour.
        const double off_s = std::remainder(seconds(next.time) - truth_s, period_s);
        EXPECT_LT(std::abs(off_s), gap_s / 2 + 0.002) << period_s << " " << gap_s << " phase " << k;
      }
    }
  }
}

TEST(TickClock, GivesSparseReadingsTheirTickOnceThePhaseIsKnown) {
  const Counter counter{0.1, 0.042};
  TickClock ticks(Watts(3000));
  for (double t = 10; t < 13; t += 0.011) ticks.add(counter.read(t));
  for (const double t : {13.61, 14.99, 16.52}) {
    ticks.add(counter.read(t, 0.005));
    const Tick tick = ticks.tick(ticks.size() - 1);
    EXPECT_NEAR(seconds(tick.time), counter.tick_before(t + 0.0025), 0.006) << t;
    EXPECT_LT(to_seconds(tick.uncertainty).value(), 0.01);
  }
}

TEST(TickClock, SaysThatAReadingAtTheVeryTickIsUncertain) {
  const Counter counter{0.1, 0.042};
  TickClock ticks(Watts(3000));
  for (double t = 10; t < 13; t += 0.011) ticks.add(counter.read(t));
  ticks.add(counter.read(14.0419));
  EXPECT_GT(to_seconds(ticks.tick(ticks.size() - 1).uncertainty).value(), 0.03);
}

TEST(TickClock, WithoutAPeriodAValueIsFromTheLastTenthOfASecond) {
  const Counter counter{0.1, 0.042};
  TickClock ticks(Watts(3000));
  for (double t = 10; t < 20; t += 2) ticks.add(counter.read(t));
  EXPECT_FALSE(ticks.period());
  const Tick tick = ticks.tick(ticks.size() - 1);
  const double off_s = std::abs(seconds(tick.time) - counter.tick_before(18));
  EXPECT_LE(off_s, 0.05);
  EXPECT_NEAR(to_seconds(tick.uncertainty).value(), 0.1 / std::sqrt(12), 1e-3);
}

TEST(TickClock, RefusesOneSentinelAndGoesOn) {
  const Counter counter{0.1, 0.042};
  TickClock ticks(Watts(3000));
  for (double t = 10; t < 12; t += 0.05) {
    CounterReading reading = counter.read(t);
    if (std::abs(t - 11) < 0.01) reading.energy = Joules(18446744073709551.0);  // all ones in mJ
    if (std::abs(t - 11.5) < 0.01) reading.energy = Joules(0);
    ticks.add(reading);
  }
  EXPECT_EQ(ticks.refused(), 2u);
  EXPECT_EQ(ticks.tick(ticks.size() - 1).epoch, 0);
}

TEST(TickClock, AResetBeginsANewEpoch) {
  const Counter counter{0.1, 0.042};
  TickClock ticks(Watts(3000));
  for (double t = 10; t < 12; t += 0.05) {
    CounterReading reading = counter.read(t);
    if (t > 11) reading.energy -= counter.read(11).energy - Joules(1);
    ticks.add(reading);
  }
  EXPECT_EQ(ticks.refused(), 1u);
  EXPECT_EQ(ticks.tick(0).epoch, 0);
  EXPECT_EQ(ticks.tick(ticks.size() - 1).epoch, 1);
}

TEST(TickClock, AnAbsurdStepIsRefused) {
  const Counter counter{0.1, 0.042};
  TickClock ticks(Watts(3000));
  ticks.add(counter.read(10));
  CounterReading reading = counter.read(10.2);
  reading.energy += Joules(50000);
  ticks.add(reading);
  ticks.add(counter.read(10.3));
  EXPECT_EQ(ticks.refused(), 1u);
  EXPECT_EQ(ticks.size(), 2u);
}

TEST(TickClock, FindsTheTicksAgainWhenTheyMove) {
  TickClock ticks(Watts(3000));
  const Counter before{0.1, 0.042};
  for (double t = 10; t < 13; t += 0.011) ticks.add(before.read(t));
  // The driver was reloaded: another phase.
  const Counter after{0.1, 0.095};
  for (double t = 13; t < 20; t += 0.011) ticks.add(after.read(t));
  const double off_s =
      std::remainder(seconds(ticks.next_after(Counter::at(20))->time) - after.tick_before(20), 0.1);
  EXPECT_LT(std::abs(off_s), 0.008);
}

}  // namespace
}  // namespace gpoeo::telemetry
