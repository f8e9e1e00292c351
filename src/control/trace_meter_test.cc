// SPDX-License-Identifier: Apache-2.0
// On a simulated H200, whose samples are fine enough to tell a rhythm.
#include "control/trace_meter.h"

#include <gtest/gtest.h>

#include "control/gpu_channel.h"
#include "twin/testing/fixtures.h"
#include "twin/twin_device.h"

namespace gpoeo::control {
namespace {

using twin::testing::expect_ok;

class TraceMeterTest : public ::testing::Test {
 protected:
  TraceMeterTest() {
    gpus_.push_back(std::make_unique<GpuChannel>(
        GpuInput{.device = device_.get(), .guard = {}, .trace = {}}, bench_.clock));
  }
  // Steps 200 ms at a time; what follow() said besides kNothing.
  std::vector<TraceMeter::Event> pass(TraceMeter& meter, double seconds) {
    std::vector<TraceMeter::Event> events;
    for (double t = 0; t < seconds; t += 0.2) {
      bench_.pass(0.2);
      gpus_.front()->poll(bench_.clock.now());
      const auto event = meter.follow(bench_.clock.now());
      if (event != TraceMeter::Event::kNothing) events.push_back(event);
    }
    return events;
  }
  std::optional<Result<TraceMeter::Measured>> measure(TraceMeter& meter, double within_s) {
    meter.open({}, bench_.clock.now());
    for (double t = 0; t < within_s; t += 0.2) {
      bench_.pass(0.2);
      gpus_.front()->poll(bench_.clock.now());
      if (auto answer = meter.poll(bench_.clock.now())) return answer;
    }
    return std::nullopt;
  }
  twin::JobHandle start_job() {
    return bench_.attach(twin::testing::steady_job("h200", "resnet50"));
  }

  twin::testing::Bench bench_{twin::testing::quiet_device("h200")};
  std::unique_ptr<gpu::Device> device_ =
      expect_ok(twin::open_device(bench_.twin, 0, gpu::Access::kControl));
  std::vector<std::unique_ptr<GpuChannel>> gpus_;
};

using Event = TraceMeter::Event;

TEST_F(TraceMeterTest, TakesOverOnceTheGpuWasBusyForLong) {
  start_job();
  TraceMeter meter(gpus_, std::chrono::seconds(20), bench_.clock.now());
  EXPECT_TRUE(pass(meter, 19).empty());
  EXPECT_FALSE(meter.active());
  EXPECT_EQ(pass(meter, 5), std::vector{Event::kTakesOver});
  EXPECT_TRUE(meter.active());
  EXPECT_FALSE(meter.warm(bench_.clock.now() - std::chrono::seconds(4)));
  pass(meter, 6);
  EXPECT_TRUE(meter.warm(bench_.clock.now()));
}

TEST_F(TraceMeterTest, NeverWhereItIsNotWanted) {
  start_job();
  TraceMeter meter(gpus_, std::nullopt, bench_.clock.now());
  EXPECT_TRUE(pass(meter, 60).empty());
  EXPECT_FALSE(meter.active());
}

TEST_F(TraceMeterTest, IdlenessIsToldOnceAndItsEndToo) {
  const auto job = start_job();
  TraceMeter meter(gpus_, std::chrono::seconds(5), bench_.clock.now());
  ASSERT_EQ(pass(meter, 20), std::vector{Event::kTakesOver});
  ASSERT_TRUE(bench_.twin.detach(0, job));
  const Instant stopped = bench_.clock.now();
  EXPECT_EQ(pass(meter, 30), std::vector{Event::kIdle});
  EXPECT_LE(to_seconds(meter.last_busy() - stopped).value(), 1);
  start_job();
  EXPECT_EQ(pass(meter, 10), std::vector{Event::kBusyAgain});
}

TEST_F(TraceMeterTest, AnIterationTakesLongerAtALowerClock) {
  start_job();
  TraceMeter meter(gpus_, Duration{}, bench_.clock.now());
  pass(meter, 10);
  const auto reference = measure(meter, 60);
  ASSERT_TRUE(reference && *reference) << (reference ? reference->error().text : "no answer");
  const auto& base = (*reference)->observation;
  EXPECT_GT(base.iterations, 0U);
  EXPECT_GT(base.energy.value(), 0);
  bench_.lock_sm(1500);
  bench_.pass(5);
  const auto slower = measure(meter, 60);
  ASSERT_TRUE(slower && *slower);
  const auto& low = (*slower)->observation;
  // By the simulator's own count.
  const auto from = bench_.truth().jobs.at(0);
  bench_.pass(60);
  const auto to = bench_.truth().jobs.at(0);
  const auto done = static_cast<double>(to.iterations - from.iterations);
  const double reference_s = (to.reference_s - from.reference_s) / done;
  EXPECT_NEAR(low.time / base.time, 60 / done / reference_s, 0.01);
  EXPECT_NEAR(low.energy / base.energy,
              (to.energy_j - from.energy_j) / (to.reference_j - from.reference_j), 0.03);
}

TEST_F(TraceMeterTest, OtherWorkGetsAReferenceOfItsOwn) {
  start_job();
  TraceMeter meter(gpus_, Duration{}, bench_.clock.now());
  pass(meter, 10);
  ASSERT_TRUE(measure(meter, 60));
  bench_.lock_sm(1500);
  bench_.pass(5);
  meter.new_work(bench_.clock.now());
  EXPECT_FALSE(meter.measuring());
  EXPECT_FALSE(meter.warm(bench_.clock.now()));
  const auto again = measure(meter, 60);
  ASSERT_TRUE(again && *again);
  EXPECT_LE((*again)->observation.time_error / (*again)->observation.time, 0.0011)
      << "the unit itself, not a comparison with what was before";
}

TEST_F(TraceMeterTest, OnceCountedItStandsDownForGood) {
  start_job();
  TraceMeter meter(gpus_, std::chrono::seconds(5), bench_.clock.now());
  pass(meter, 10);
  ASSERT_TRUE(meter.active());
  meter.open({}, bench_.clock.now());
  meter.stand_down();
  EXPECT_FALSE(meter.active());
  EXPECT_FALSE(meter.measuring());
  EXPECT_TRUE(pass(meter, 60).empty());
}

// No power reading at all: that is said, after a while.
TEST_F(TraceMeterTest, WithoutReadingsItGivesUp) {
  TraceMeter meter(gpus_, Duration{}, bench_.clock.now());
  meter.open({}, bench_.clock.now());
  std::optional<Result<TraceMeter::Measured>> answer;
  double waited = 0;
  for (; waited < 120 && !answer; waited += 1) {
    bench_.pass(1);  // nobody polls the card
    answer = meter.poll(bench_.clock.now());
  }
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->error().kind, ErrorKind::kIo);
  EXPECT_GE(waited, 30);
}

}  // namespace
}  // namespace gpoeo::control
