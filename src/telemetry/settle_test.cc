// SPDX-License-Identifier: Apache-2.0
#include "telemetry/settle.h"

#include <gtest/gtest.h>

#include <cmath>

#include "telemetry/testing/loop.h"

namespace gpoeo::telemetry {
namespace {

using gpu::EventReasons;

constexpr double kWrite = 5;  // the clock write, seconds into the run
const gpu::ClockRange kTo1200{megahertz(345), megahertz(1200)};

// A card that goes from 1980 MHz, 600 W to 1200 MHz, 350 W within `lag_s` of the write.
struct Card {
  double clock_lag_s = 0.15;
  double power_lag_s = 0.25;
  double power(double t) const {
    const double noise = 8 * std::sin(t * 77) + 5 * std::sin(t * 201);
    if (t < kWrite) return 600 + noise;
    return 350 + 250 * std::exp(-(t - kWrite) / (power_lag_s / 3)) + noise;
  }
  double clock(double t) const { return t < kWrite + clock_lag_s ? 1980 : 1200; }
};

SettleReport settle(Loop& loop, std::optional<gpu::ClockRange> asked, SettleOptions options = {}) {
  loop.run_until(kWrite);
  Settle settle(loop.device.at(kWrite), asked, options);
  for (double t = kWrite; t < kWrite + 10; t += 0.05) {
    loop.run_until(t);
    loop.sampler.request_readings();
    loop.sampler.poll(loop.clock.now());
    if (settle.update(loop.sampler.history(), loop.clock.now()).state != SettleState::kWaiting)
      break;
  }
  return settle.report();
}

TEST(Settle, SettlesWhenClockAndPowerHaveArrived) {
  const Card card;
  Loop loop([=](double t) { return card.power(t); });
  loop.device.sm_clock_mhz = [=](double t) { return card.clock(t); };
  const SettleReport report = settle(loop, kTo1200);
  EXPECT_EQ(report.state, SettleState::kSettled) << report.text;
  const double after_s = to_seconds(report.settled_at - loop.device.at(kWrite)).value();
  EXPECT_GE(after_s, 0.1);
  EXPECT_LE(after_s, 0.6);
  ASSERT_TRUE(report.clock);
  EXPECT_DOUBLE_EQ(to_mhz(*report.clock), 1200);
}

TEST(Settle, WaitsForPowerThatComesLate) {
  const Card card{0.05, 1.5};
  Loop loop([=](double t) { return card.power(t); });
  loop.device.sm_clock_mhz = [=](double t) { return card.clock(t); };
  const SettleReport report = settle(loop, kTo1200);
  EXPECT_EQ(report.state, SettleState::kSettled) << report.text;
  EXPECT_GE(to_seconds(report.settled_at - loop.device.at(kWrite)).value(), 0.5);
}

TEST(Settle, APowerCapIsCouldNotHold) {
  Loop loop([](double) { return 700.0; });
  // The cap moves the clock about.
  loop.device.sm_clock_mhz = [](double t) { return 1500 + 60 * std::sin(t * 13); };
  loop.device.reasons = [](double) { return EventReasons::kSwPowerCap; };
  const SettleReport report = settle(loop, gpu::ClockRange{megahertz(345), megahertz(1980)});
  EXPECT_EQ(report.state, SettleState::kCouldNotHold) << report.text;
  EXPECT_TRUE(report.reasons.has(EventReasons::kSwPowerCap));
  EXPECT_NE(report.text.find("power cap"), std::string::npos) << report.text;
  EXPECT_LT(to_seconds(report.settled_at - loop.device.at(kWrite)).value(), 1.0);
}

TEST(Settle, AClockThatNeverComesDownIsCouldNotHoldAtTheDeadline) {
  Loop loop([](double) { return 600.0; });
  const SettleReport report = settle(loop, kTo1200);
  EXPECT_EQ(report.state, SettleState::kCouldNotHold) << report.text;
  EXPECT_NE(report.text.find("1980"), std::string::npos) << report.text;
}

TEST(Settle, AnIdleCardSaysNothing) {
  Loop loop([](double) { return 90.0; });
  loop.device.sm_clock_mhz = [](double) { return 345.0; };
  loop.device.reasons = [](double) { return EventReasons::kGpuIdle; };
  const SettleReport report = settle(loop, kTo1200);
  EXPECT_EQ(report.state, SettleState::kTimedOut);
  EXPECT_NE(report.text.find("idle"), std::string::npos) << report.text;
}

TEST(Settle, SwingingPowerLeavesItToTheClock) {
  Loop loop([](double t) { return t / 0.7 - std::floor(t / 0.7) < 0.5 ? 650.0 : 150.0; });
  loop.device.sm_clock_mhz = [](double t) { return t < kWrite + 0.1 ? 1980.0 : 1200.0; };
  const SettleReport report = settle(loop, kTo1200);
  EXPECT_EQ(report.state, SettleState::kSettled) << report.text;
}

TEST(Settle, PowerThatKeepsMovingRunsIntoTheDeadline) {
  Loop loop([](double t) { return 300 + 80 * std::max(0.0, t - kWrite); });
  loop.device.sm_clock_mhz = [](double) { return 1200.0; };
  const SettleReport report = settle(loop, kTo1200);
  EXPECT_EQ(report.state, SettleState::kTimedOut) << report.text;
  EXPECT_NEAR(to_seconds(report.settled_at - loop.device.at(kWrite)).value(), 3, 0.2);
}

TEST(Settle, AfterAResetAnySteadyStateWillDo) {
  const Card card;
  Loop loop([=](double t) { return card.power(t); });
  loop.device.sm_clock_mhz = [](double t) { return 1900 + 40 * std::sin(t * 9); };
  const SettleReport report = settle(loop, std::nullopt);
  EXPECT_EQ(report.state, SettleState::kSettled) << report.text;
}

TEST(Settle, WithoutAClockReadingPowerDecides) {
  const Card card;
  Loop loop([=](double t) { return card.power(t); });
  loop.device.fault = [](gpu::Reading r, std::size_t) -> std::optional<Error> {
    if (r != gpu::Reading::kSmClock) return std::nullopt;
    return Error{ErrorKind::kNotSupported, "no clock"};
  };
  const SettleReport report = settle(loop, kTo1200);
  EXPECT_EQ(report.state, SettleState::kSettled) << report.text;
  EXPECT_FALSE(report.clock);
}

}  // namespace
}  // namespace gpoeo::telemetry
