// SPDX-License-Identifier: Apache-2.0
// Stretches of a simulated H200's energy.
#include "control/energy_book.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "control/gpu_channel.h"
#include "twin/testing/fixtures.h"
#include "twin/twin_device.h"

namespace gpoeo::control {
namespace {

class EnergyBookTest : public ::testing::Test {
 protected:
  EnergyBookTest() { bench_.attach(twin::testing::compute_job()); }
  Instant now() const { return bench_.clock.now(); }
  Instant at(double s) const { return started_ + to_duration(Seconds(s)); }
  void pass(double seconds) {
    const Instant until = now() + to_duration(Seconds(seconds));
    while (now() < until) {
      bench_.pass(0.2);
      if (const auto polled = channel_.poll(now()); polled.stretch) {
        stretches_.push_back(*polled.stretch);
      }
    }
  }
  void close() {
    for (const auto& s : channel_.close(now())) stretches_.push_back(s);
  }
  bool ends_at(Instant t) const {
    return std::ranges::any_of(stretches_, [&](const auto& s) { return s.to == t; });
  }
  void expect_seamless() const {
    for (std::size_t i = 1; i < stretches_.size(); ++i) {
      EXPECT_EQ(stretches_[i].from, stretches_[i - 1].to) << i;
    }
  }

  twin::testing::Bench bench_{twin::testing::quiet_device("h200")};
  Instant started_ = bench_.clock.now();
  std::unique_ptr<gpu::Device> device_ =
      twin::testing::expect_ok(twin::open_device(bench_.twin, 0, gpu::Access::kReadOnly));
  GpuChannel channel_{GpuInput{.device = device_.get(), .guard = {}, .trace = {}}, bench_.clock};
  std::vector<EnergyStretch> stretches_;
};

TEST_F(EnergyBookTest, AFewSecondsEachAndNothingBetween) {
  pass(31);
  close();
  ASSERT_GE(stretches_.size(), 5U);
  expect_seamless();
  EXPECT_LE(to_seconds(now() - stretches_.back().to).value(), 0.2);
  Joules sum;
  for (const auto& s : stretches_) sum += s.energy;
  EXPECT_NEAR(sum / channel_.book().energy(), 1, 1e-12);
  EXPECT_NEAR(sum.value() / bench_.truth().energy.value(), 1, 0.02);
}

TEST_F(EnergyBookTest, CutsAreExact) {
  pass(12.3);
  const std::vector<Instant> cuts{at(12.111), at(12.2), at(12.25)};
  for (const Instant cut : {cuts[1], cuts[0], cuts[2]}) channel_.book().cut_at(cut);
  pass(10);
  for (const Instant cut : cuts) EXPECT_TRUE(ends_at(cut));
  expect_seamless();
}

TEST_F(EnergyBookTest, WhatIsBookedIsNotCutAgain) {
  pass(20);
  const auto booked = stretches_.size();
  ASSERT_GT(booked, 0U);
  channel_.book().cut_at(stretches_.front().from);
  channel_.book().cut_at(stretches_.back().to);
  pass(20);
  expect_seamless();
  EXPECT_TRUE(std::ranges::all_of(stretches_, [](const auto& s) { return s.to > s.from; }));
}

TEST_F(EnergyBookTest, StretchesEndWhereIterationsDo) {
  std::vector<Instant> ends;
  for (int i = 0; i < 60; ++i) {
    pass(0.4);
    ends.push_back(now() - to_duration(Seconds(0.123)));
    channel_.book().iteration_ended(ends.back());
  }
  ASSERT_GE(stretches_.size(), 3U);
  for (const auto& s : stretches_) EXPECT_TRUE(std::ranges::find(ends, s.to) != ends.end());
}

// In a pause nothing ends: the stretch ends with the last iteration, and the pause has its own.
TEST_F(EnergyBookTest, APauseBeginsAStretch) {
  pass(8);
  const Instant last = now() - to_duration(Seconds(0.1));
  channel_.book().iteration_ended(last);
  pass(20);
  EXPECT_TRUE(ends_at(last));
  EXPECT_GT(stretches_.back().to, last) << "time goes on without iterations";
  const Instant resumed = now() - to_duration(Seconds(1.5));
  channel_.book().cut_at(resumed);
  channel_.book().iteration_ended(now());
  pass(10);
  EXPECT_TRUE(ends_at(resumed));
  expect_seamless();
}

TEST_F(EnergyBookTest, CutsThatWaitAtTheEndAreMade) {
  pass(7);
  const Instant cut = now() - to_duration(Seconds(0.5));
  channel_.book().cut_at(cut);
  close();
  EXPECT_TRUE(ends_at(cut));
  expect_seamless();
}

}  // namespace
}  // namespace gpoeo::control
