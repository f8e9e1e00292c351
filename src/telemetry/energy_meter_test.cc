// SPDX-License-Identifier: Apache-2.0
#include "telemetry/energy_meter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "telemetry/testing/loop.h"

namespace gpoeo::telemetry {
namespace {

double constant(double) { return 400; }
double ramp(double t_s) { return 200 + 10 * std::max(0.0, t_s); }
// Iterations of 0.43 s: compute, memory, a gap.
double iterations(double t_s) {
  const double x = t_s / 0.43 - std::floor(t_s / 0.43);
  return x < 0.6 ? 620 : x < 0.85 ? 330 : 130;
}

SyntheticHabits h200() {
  SyntheticHabits h;
  h.sample_jitter_s = 0.008;
  h.tick_jitter_s = 0.003;
  h.counter_cost_s = 0.005;
  return h;
}
SyntheticHabits a100() {
  SyntheticHabits h;
  h.sample_period_s = 0.1;
  h.sample_window_s = 0.025;
  return h;
}

// Largest error of `windows` windows of `length_s`, as a share of the truth.
double worst_error(Loop& loop, double from_s, double to_s, double length_s) {
  double worst = 0;
  int windows = 0;
  for (double t = from_s; t + length_s <= to_s; t += 0.137) {
    const auto result = loop.meter.energy(loop.device.at(t), loop.device.at(t + length_s));
    EXPECT_TRUE(result) << t << ": " << (result ? "" : result.error().text);
    if (!result) return 1;
    const double truth_j = loop.device.energy_j(t, t + length_s);
    worst = std::max(worst, std::abs(result->energy.value() / truth_j - 1));
    ++windows;
  }
  EXPECT_GT(windows, 10);
  return worst;
}

TEST(EnergyMeter, TrustsFineSamplesThatAgreeWithTheCounter) {
  Loop loop(iterations, h200());
  loop.run_until(30);
  const SourceChoice& choice = loop.meter.choice();
  EXPECT_TRUE(choice.final);
  EXPECT_EQ(choice.source, EnergySource::kPowerSamples) << choice.reason;
  ASSERT_TRUE(choice.agreement);
  EXPECT_LT(std::abs(*choice.agreement), 0.02);
  EXPECT_LT(worst_error(loop, 1, 28, 3), 0.01);
}

TEST(EnergyMeter, DecidesWithinSixSeconds) {
  Loop loop(iterations, h200());
  loop.run_until(6.5);
  EXPECT_TRUE(loop.meter.choice().final) << loop.meter.choice().reason;
}

TEST(EnergyMeter, ADriverThatSamplesPartOfTheTimeEndsWithTheCounter) {
  Loop loop(iterations, a100());
  loop.run_until(30);
  EXPECT_TRUE(loop.meter.choice().final);
  EXPECT_EQ(loop.meter.choice().source, EnergySource::kEnergyCounter);
  EXPECT_LT(worst_error(loop, 5, 28, 3), 0.01);
}

TEST(EnergyMeter, FineSamplesThatMissThePeaksEndWithTheCounter) {
  SyntheticHabits habits;
  habits.sample_period_s = 0.025;
  habits.sample_window_s = 0.005;
  // Bursts in step with the sensor, just outside its window.
  Loop loop(
      [](double t_s) {
        const double x = t_s / 0.025 - std::floor(t_s / 0.025);
        return x < 0.4 ? 600.0 : 250.0;
      },
      habits);
  loop.run_until(30);
  EXPECT_EQ(loop.meter.choice().source, EnergySource::kEnergyCounter) << loop.meter.choice().reason;
  ASSERT_TRUE(loop.meter.choice().agreement);
  EXPECT_LT(*loop.meter.choice().agreement, -0.05);
  EXPECT_LT(worst_error(loop, 5, 28, 3), 0.01);
}

TEST(EnergyMeter, GivesSamplesUpWhenTheyStopAgreeing) {
  SyntheticHabits habits;
  habits.sample_period_s = 0.025;
  habits.sample_window_s = 0.005;
  Loop loop(
      [](double t_s) {
        if (t_s < 20) return 400.0;
        const double x = t_s / 0.025 - std::floor(t_s / 0.025);
        return x < 0.4 ? 600.0 : 250.0;
      },
      habits);
  loop.run_until(18);
  EXPECT_EQ(loop.meter.choice().source, EnergySource::kPowerSamples);
  loop.run_until(90);
  EXPECT_EQ(loop.meter.choice().source, EnergySource::kEnergyCounter);
}

TEST(EnergyMeter, WithoutACounterSamplesCountButAreCalledUnchecked) {
  Loop loop(iterations, h200());
  loop.device.fault = [](gpu::Reading r, std::size_t) -> std::optional<Error> {
    if (r != gpu::Reading::kEnergyCounter) return std::nullopt;
    return Error{ErrorKind::kNotSupported, "no counter"};
  };
  loop.run_until(12);
  const auto result = loop.meter.energy(loop.device.at(3), loop.device.at(9));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->source, EnergySource::kUncheckedSamples);
  EXPECT_NEAR(result->energy.value(), loop.device.energy_j(3, 9), 0.01 * result->energy.value());
  EXPECT_GE(result->uncertainty.value(), 0.04 * result->energy.value());
}

TEST(EnergyMeter, WithoutSamplesTheCounterCarriesTheFigures) {
  Loop loop(iterations);
  loop.device.fault = [](gpu::Reading r, std::size_t) -> std::optional<Error> {
    if (r != gpu::Reading::kPowerSamples && r != gpu::Reading::kPowerInstant &&
        r != gpu::Reading::kPowerAverage) {
      return std::nullopt;
    }
    return Error{ErrorKind::kNotSupported, "no power"};
  };
  loop.run_until(20);
  EXPECT_EQ(loop.meter.choice().source, EnergySource::kEnergyCounter);
  EXPECT_LT(worst_error(loop, 5, 18, 3), 0.015);
}

TEST(EnergyMeter, ACounterThatStandsStillIsNotBelieved) {
  Loop loop(iterations, h200());
  loop.device.counter_reads = [](double) { return 42.0; };
  loop.run_until(12);
  const auto result = loop.meter.energy(loop.device.at(3), loop.device.at(9));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->source, EnergySource::kUncheckedSamples);
  EXPECT_GT(result->energy.value(), 1000);
}

TEST(EnergyMeter, AResetOfTheCounterIsToldAndDoesNotBecomeEnergy) {
  Loop loop(iterations, a100());
  double base_j = 0;
  loop.device.counter_reads = [&](double e) {
    if (base_j == 0 && loop.device.now_s() > 15) base_j = e;
    return e - base_j;
  };
  loop.run_until(60);
  EXPECT_GE(loop.meter.rejected_counter_steps(), 1u);
  const auto across = loop.meter.energy(loop.device.at(13), loop.device.at(17));
  ASSERT_TRUE(across) << across.error().text;
  EXPECT_EQ(across->source, EnergySource::kUncheckedSamples);
  EXPECT_NEAR(across->energy.value(), loop.device.energy_j(13, 17), 0.1 * across->energy.value());
  EXPECT_LT(worst_error(loop, 20, 28, 3), 0.01);
}

TEST(EnergyMeter, WindowsAddUp) {
  for (const SyntheticHabits& habits : {h200(), a100()}) {
    Loop loop(iterations, habits);
    loop.run_until(20);
    const auto e = [&](double a, double b) {
      return loop.meter.energy(loop.device.at(a), loop.device.at(b)).value().energy.value();
    };
    for (double middle = 6.3; middle < 15; middle += 0.517) {
      EXPECT_NEAR(e(6, middle) + e(middle, 16), e(6, 16), 1e-6 * e(6, 16));
    }
  }
}

TEST(EnergyMeter, KnowsTheEnergyOfConstantPowerAndRamps) {
  for (const SyntheticHabits& habits : {SyntheticHabits{}, a100()}) {
    for (const auto& power : {constant, ramp}) {
      Loop loop(power, habits);
      loop.run_until(20);
      EXPECT_LT(worst_error(loop, 5, 18, 3), 0.004);
    }
  }
}

TEST(EnergyMeter, AGapIsFilledFromItsNeighboursAndWidensTheUncertainty) {
  Loop loop(iterations);
  loop.device.sample_lost = [](double t) { return t > 10 && t < 10.4; };
  loop.run_until(20);
  const auto without =
      loop.meter.energy_from(EnergySource::kPowerSamples, loop.device.at(5), loop.device.at(9));
  const auto with =
      loop.meter.energy_from(EnergySource::kPowerSamples, loop.device.at(8), loop.device.at(12));
  ASSERT_TRUE(without && with);
  EXPECT_NEAR(with->energy.value(), loop.device.energy_j(8, 12), 3 * with->uncertainty.value());
  EXPECT_GT(with->uncertainty.value(), 1.3 * without->uncertainty.value());
  EXPECT_NEAR(with->coverage, 0.9, 0.02);
  EXPECT_EQ(loop.sampler.gaps(), 1u);
}

TEST(EnergyMeter, AWindowFullOfHolesIsTakenFromTheCounter) {
  Loop loop(iterations);
  loop.device.sample_lost = [](double t) { return t > 20 && t < 22; };
  loop.run_until(30);
  ASSERT_EQ(loop.meter.choice().source, EnergySource::kPowerSamples);
  const auto result = loop.meter.energy(loop.device.at(19), loop.device.at(25));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->source, EnergySource::kEnergyCounter);
  EXPECT_NEAR(result->energy.value(), loop.device.energy_j(19, 25), 0.02 * result->energy.value());
}

TEST(EnergyMeter, CounterWindowsHoldForManyPhasesAndPollRates) {
  for (const double poll_s : {0.005, 0.02, 0.037, 0.05, 0.1}) {
    double worst = 0;
    for (int k = 0; k < 10; ++k) {
      SyntheticHabits habits = a100();
      habits.tick_phase_s = 0.01 * k + 0.0007;
      habits.tick_jitter_s = 0.003;
      Loop loop(iterations, habits);
      loop.poll_at_least = to_duration(Seconds(poll_s));
      loop.run_until(16);
      EXPECT_EQ(loop.meter.choice().source, EnergySource::kEnergyCounter);
      worst = std::max(worst, worst_error(loop, 5, 15, 3));
    }
    EXPECT_LT(worst, 0.01) << poll_s;
  }
}

TEST(EnergyMeter, ACostlyCounterWithMarksAtTheEdgesStaysWithinOnePercent) {
  SyntheticHabits habits = a100();
  habits.counter_cost_s = 0.005;
  habits.tick_jitter_s = 0.003;
  Loop loop(iterations, habits);
  loop.run_until(12);
  double worst = 0;
  for (double t = 12; t < 100; t += 7.31) {
    loop.run_until(t);
    loop.sampler.request_energy_mark();
    loop.run_until(t + 4);
    loop.sampler.request_energy_mark();
    loop.run_until(t + 5.5);
    const auto result = loop.meter.energy(loop.device.at(t), loop.device.at(t + 4));
    ASSERT_TRUE(result) << result.error().text;
    worst = std::max(worst, std::abs(result->energy.value() / loop.device.energy_j(t, t + 4) - 1));
  }
  EXPECT_LT(worst, 0.01);
  // Two marks of two calls each 7.3 s and the slow heartbeat.
  const double calls_per_s =
      static_cast<double>(loop.device.calls(gpu::Reading::kEnergyCounter)) / 100;
  EXPECT_LT(calls_per_s, 1.5);
}

TEST(EnergyMeter, StatesItsUncertaintyHonestly) {
  // Errors over the stated standard error: rms near or below one, never absurdly above.
  for (const SyntheticHabits& habits : {h200(), a100()}) {
    Loop loop(iterations, habits);
    loop.run_until(40);
    double squares = 0;
    int n = 0;
    for (double t = 6; t + 3 < 38; t += 0.211, ++n) {
      const auto r = loop.meter.energy(loop.device.at(t), loop.device.at(t + 3)).value();
      const double z = (r.energy.value() - loop.device.energy_j(t, t + 3)) / r.uncertainty.value();
      squares += z * z;
    }
    EXPECT_LT(std::sqrt(squares / n), 1.5);
    EXPECT_GT(std::sqrt(squares / n), 0.05);
  }
}

TEST(EnergyMeter, RefusesWindowsItCannotKnow) {
  Loop loop(constant);
  EXPECT_FALSE(loop.meter.energy(loop.device.at(1), loop.device.at(2)));
  loop.run_until(10);
  const auto backwards = loop.meter.energy(loop.device.at(5), loop.device.at(5));
  ASSERT_FALSE(backwards);
  EXPECT_EQ(backwards.error().kind, ErrorKind::kInvalid);
  const auto future = loop.meter.energy(loop.device.at(5), loop.device.at(11));
  ASSERT_FALSE(future);
  EXPECT_EQ(future.error().kind, ErrorKind::kBusy);
  const auto past = loop.meter.energy(loop.device.at(-50), loop.device.at(5));
  ASSERT_FALSE(past);
  EXPECT_EQ(past.error().kind, ErrorKind::kInvalid);
}

}  // namespace
}  // namespace gpoeo::telemetry
