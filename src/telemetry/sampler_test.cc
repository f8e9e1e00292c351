// SPDX-License-Identifier: Apache-2.0
#include "telemetry/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "telemetry/testing/loop.h"

namespace gpoeo::telemetry {
namespace {

using gpu::Reading;

double constant(double) { return 400; }

std::vector<SamplerEvent> of_kind(const std::vector<SamplerEvent>& events, SamplerEventKind kind) {
  std::vector<SamplerEvent> found;
  for (const auto& e : events) {
    if (e.kind == kind) found.push_back(e);
  }
  return found;
}
auto failing(Reading reading, ErrorKind kind, double from_s, double to_s, const Loop& loop) {
  return [=, &loop](Reading r, std::size_t) -> std::optional<Error> {
    const double t = loop.device.now_s();
    if (r == reading && t >= from_s && t < to_s) return Error{kind, "injected"};
    return std::nullopt;
  };
}

TEST(Sampler, TakesEverySampleOnceInOrder) {
  Loop loop(constant);
  loop.run_until(20);
  const auto& power = loop.sampler.history().power;
  // 20 s and the 2.4 s that were in the buffer, at 50 Hz, less what the last batch has not fetched.
  EXPECT_GE(power.size(), 50u * 21);
  for (std::size_t i = 1; i < power.size(); ++i) {
    EXPECT_NEAR(to_seconds(power[i].time - power[i - 1].time).value(), 0.02, 1e-6);
  }
  EXPECT_EQ(loop.sampler.refused().total(), 0u);
  EXPECT_EQ(loop.sampler.gaps(), 0u);
  ASSERT_TRUE(loop.sampler.power_spacing());
  EXPECT_NEAR(to_seconds(*loop.sampler.power_spacing()).value(), 0.02, 1e-6);
}

TEST(Sampler, AsksForPowerAsOftenAsTheBufferIsShort) {
  for (const auto& [buffer_s, least, most] :
       {std::tuple{2.4, 18, 25}, std::tuple{0.8, 55, 75}, std::tuple{0.3, 90, 110}}) {
    SyntheticHabits habits;
    habits.buffer_s = buffer_s;
    Loop loop(constant, habits);
    loop.run_until(20);
    EXPECT_EQ(loop.sampler.gaps(), 0u) << buffer_s;
    const auto calls = static_cast<int>(loop.device.calls(Reading::kPowerSamples));
    EXPECT_GE(calls, least) << buffer_s;
    EXPECT_LE(calls, most) << buffer_s;
  }
}

TEST(Sampler, MakesFewCalls) {
  SyntheticHabits habits;
  habits.counter_cost_s = 0.006;  // as on an H200
  Loop loop(constant, habits);
  loop.run_until(100);
  EXPECT_LT(loop.sampler.calls_per_second(), 12);
  // After the source is chosen the costly counter is a check each half minute.
  EXPECT_LE(loop.device.calls(Reading::kEnergyCounter), 10u);
  EXPECT_LT(loop.sampler.call_time_share(), 0.001);
}

TEST(Sampler, NeverAsksTwiceForWhatIsNotSupported) {
  Loop loop(constant);
  loop.device.fault = [](Reading r, std::size_t) -> std::optional<Error> {
    if (r == Reading::kUtilization) return Error{ErrorKind::kNotSupported, "no utilisation"};
    if (r == Reading::kProcesses) return Error{ErrorKind::kNoPermission, "needs root"};
    return std::nullopt;
  };
  loop.run_until(60);
  EXPECT_EQ(loop.device.calls(Reading::kUtilization), 1u);
  EXPECT_EQ(loop.device.calls(Reading::kProcesses), 1u);
  const auto gone = loop.sampler.unavailable();
  EXPECT_NE(std::find(gone.begin(), gone.end(), Reading::kUtilization), gone.end());
  EXPECT_NE(std::find(gone.begin(), gone.end(), Reading::kProcesses), gone.end());
  EXPECT_EQ(of_kind(loop.sampler.take_events(), SamplerEventKind::kReadingDropped).size(), 2u);
  // The others go on.
  EXPECT_GT(loop.device.calls(Reading::kSmClock), 100u);
  for (std::size_t i = 0; i < loop.sampler.history().status.size(); ++i) {
    EXPECT_FALSE(loop.sampler.history().status[i].utilization);
  }
}

TEST(Sampler, NeverAsksForWhatTheDeviceSaysItLacks) {
  VirtualClock clock;
  SyntheticDevice device(clock, constant);
  device.capabilities_[Reading::kTemperature] = gpu::Support::kNo;
  Sampler sampler(device, clock);
  for (int i = 0; i < 100; ++i)
    clock.advance(std::max(Duration(1), sampler.poll(clock.now()) - clock.now()));
  EXPECT_EQ(device.calls(Reading::kTemperature), 0u);
}

TEST(Sampler, AFailingReadingBacksOffIsToldOnceAndRecovers) {
  Loop loop(constant);
  loop.device.fault = failing(Reading::kSmClock, ErrorKind::kIo, 10, 40, loop);
  loop.run_until(9.9);
  const auto before = loop.device.calls(Reading::kSmClock);
  loop.run_until(40);
  // 1, 2, 4, 8, 16 s apart: six calls instead of 75.
  EXPECT_LE(loop.device.calls(Reading::kSmClock) - before, 8u);
  loop.run_until(60);
  const auto events = loop.sampler.take_events();
  EXPECT_EQ(of_kind(events, SamplerEventKind::kReadingFailing).size(), 1u);
  EXPECT_EQ(of_kind(events, SamplerEventKind::kReadingRecovered).size(), 1u);
  EXPECT_GE(loop.sampler.stats(Reading::kSmClock).failures, 4u);
  EXPECT_FALSE(loop.sampler.stats(Reading::kSmClock).dropped);
  // Power never stopped.
  EXPECT_EQ(loop.sampler.gaps(), 0u);
}

TEST(Sampler, ALostGpuIsOneEventAndItsReturnAnother) {
  Loop loop(constant);
  loop.device.fault = [&](Reading, std::size_t) -> std::optional<Error> {
    const double t = loop.device.now_s();
    if (t > 10 && t < 30) return Error{ErrorKind::kDeviceLost, "fell off the bus"};
    return std::nullopt;
  };
  loop.run_until(10);
  std::size_t calls = 0;
  for (int r = 0; r < static_cast<int>(Reading::kCount); ++r) {
    calls += loop.device.calls(static_cast<Reading>(r));
  }
  loop.run_until(29);
  EXPECT_TRUE(loop.sampler.device_lost());
  std::size_t calls_lost = 0;
  for (int r = 0; r < static_cast<int>(Reading::kCount); ++r) {
    calls_lost += loop.device.calls(static_cast<Reading>(r));
  }
  EXPECT_LE(calls_lost - calls, 8u);  // only looks whether it is back
  loop.run_until(60);
  EXPECT_FALSE(loop.sampler.device_lost());
  const auto events = loop.sampler.take_events();
  EXPECT_EQ(of_kind(events, SamplerEventKind::kDeviceLost).size(), 1u);
  EXPECT_EQ(of_kind(events, SamplerEventKind::kDeviceBack).size(), 1u);
  EXPECT_EQ(of_kind(events, SamplerEventKind::kPowerGap).size(), 1u);
  EXPECT_GT(to_seconds(loop.sampler.gap_time()).value(), 15);
}

TEST(Sampler, RefusesAndCountsBadSamples) {
  Loop loop(constant);
  loop.run_until(5);
  const auto before = loop.sampler.history().power.size();
  const Instant last = loop.sampler.history().power.back().time;
  loop.device.sample_lost = [](double) { return true; };  // only the bad ones arrive
  loop.device.extra_samples = {
      {last, Watts(400)},
      {last - std::chrono::milliseconds(5), Watts(400)},
      {loop.clock.now() + std::chrono::hours(24 * 365), Watts(400)},
      {last + std::chrono::milliseconds(1), Watts(-3)},
      {last + std::chrono::milliseconds(2), Watts(4294967.295)},
      {last + std::chrono::milliseconds(3), Watts(std::numeric_limits<double>::quiet_NaN())},
  };
  loop.sampler.request_readings();
  loop.sampler.poll(loop.clock.now());
  const RefusedSamples& refused = loop.sampler.refused();
  EXPECT_EQ(refused.duplicate, 1u);
  EXPECT_EQ(refused.out_of_order, 1u);
  EXPECT_EQ(refused.future, 1u);
  EXPECT_EQ(refused.absurd, 3u);
  EXPECT_EQ(loop.sampler.history().power.size(), before);
  // And the true ones are taken again afterwards.
  loop.device.sample_lost = nullptr;
  loop.run_until(8);
  EXPECT_GT(loop.sampler.history().power.size(), before + 100);
}

TEST(Sampler, TellsAGapWithItsLength) {
  Loop loop(constant);
  loop.device.sample_lost = [](double t) { return t > 8 && t < 8.5; };
  loop.run_until(15);
  const auto gaps = of_kind(loop.sampler.take_events(), SamplerEventKind::kPowerGap);
  ASSERT_EQ(gaps.size(), 1u);
  EXPECT_NEAR(to_seconds(gaps[0].duration).value(), 0.5, 0.021);
}

TEST(Sampler, UsualJitterIsNoGap) {
  // H200: 20 ms with single spacings up to 45 ms.
  SyntheticHabits habits;
  habits.sample_jitter_s = 0.019;
  Loop loop(constant, habits);
  loop.run_until(30);
  EXPECT_EQ(loop.sampler.gaps(), 0u);
}

TEST(Sampler, PollsPowerWhereThereIsNoSampleBuffer) {
  Loop loop(constant);
  loop.device.fault = [](Reading r, std::size_t) -> std::optional<Error> {
    if (r == Reading::kPowerSamples) return Error{ErrorKind::kNotSupported, "old driver"};
    return std::nullopt;
  };
  loop.run_until(10);
  EXPECT_NEAR(static_cast<double>(loop.sampler.history().power.size()), 100, 10);
  EXPECT_NEAR(loop.sampler.history().power.back().power.value(), 400, 1);
}

TEST(Sampler, BoundsItsMemory) {
  TimeRing<gpu::PowerSample> ring(100);
  for (int i = 0; i < 250; ++i) ring.push({instant_from_ns(i), Watts(i)});
  EXPECT_EQ(ring.size(), 100u);
  EXPECT_EQ(ring.total_pushed(), 250u);
  EXPECT_EQ(ring.front().power.value(), 150);
  EXPECT_EQ(ring.back().power.value(), 249);
  EXPECT_EQ(ring.first_after(instant_from_ns(199)), 50u);
  EXPECT_EQ(ring.first_after(instant_from_ns(0)), 0u);
  EXPECT_EQ(ring.first_after(instant_from_ns(249)), 100u);
}

TEST(Sampler, RequestedReadingsComeAtTheNextPoll) {
  Loop loop(constant);
  loop.run_until(5);
  const auto power = loop.device.calls(Reading::kPowerSamples);
  const auto clocks = loop.device.calls(Reading::kSmClock);
  loop.clock.advance(std::chrono::milliseconds(3));
  loop.sampler.request_readings();
  loop.sampler.poll(loop.clock.now());
  EXPECT_EQ(loop.device.calls(Reading::kPowerSamples), power + 1);
  EXPECT_EQ(loop.device.calls(Reading::kSmClock), clocks + 1);
}

TEST(Sampler, CountersAreReadOnlyWhileAskedFor) {
  VirtualClock clock;
  SyntheticDevice device(clock, constant);
  device.capabilities_[Reading::kCounters] = gpu::Support::kYes;
  Sampler sampler(device, clock);
  const auto run = [&](double seconds) {
    const Instant end = clock.now() + to_duration(Seconds(seconds));
    while (clock.now() < end)
      clock.advance(std::max(Duration(1), sampler.poll(clock.now()) - clock.now()));
  };
  run(5);
  EXPECT_EQ(device.calls(Reading::kCounters), 0u);
  sampler.set_counter_period(std::chrono::milliseconds(500));
  run(5);
  EXPECT_NEAR(static_cast<double>(device.calls(Reading::kCounters)), 10, 2);
  EXPECT_EQ(sampler.history().counters.size(), device.calls(Reading::kCounters));
  const auto so_far = device.calls(Reading::kCounters);
  sampler.set_counter_period(std::nullopt);
  run(5);
  EXPECT_EQ(device.calls(Reading::kCounters), so_far);
}

}  // namespace
}  // namespace gpoeo::telemetry
