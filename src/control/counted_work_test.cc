// SPDX-License-Identifier: Apache-2.0
// Runs of counted iterations: where pauses and other work divide them.
#include "control/counted_work.h"

#include <gtest/gtest.h>

namespace gpoeo::control {
namespace {

Instant at(double s) { return instant_from_ns(1'000'000'000'000) + to_duration(Seconds(s)); }

std::vector<Instant> every(double each_s, double from_s, int ends) {
  std::vector<Instant> all;
  for (int i = 0; i < ends; ++i) all.push_back(at(from_s + i * each_s));
  return all;
}

void expect_run(const IterationRun& run, double first_s, double last_s, std::uint64_t iterations) {
  EXPECT_EQ(run.first_end, at(first_s));
  EXPECT_EQ(run.last_end, at(last_s));
  EXPECT_EQ(run.iterations, iterations);
}

TEST(CountedWork, TheFirstEndOnlyOpens) {
  CountedWork work;
  const auto breaks = work.add(every(1, 0, 11));
  ASSERT_EQ(breaks.size(), 1U);
  EXPECT_EQ(breaks[0].first_end, at(0));
  EXPECT_FALSE(breaks[0].last_end);
  ASSERT_EQ(work.runs(0).size(), 1U);
  expect_run(work.runs(0)[0], 0, 10, 10);
  EXPECT_EQ(work.iterations(), 11U);
  EXPECT_TRUE(work.runs(7).empty());
}

TEST(CountedWork, APauseDividesRuns) {
  CountedWork work;
  work.add(every(1, 0, 11));
  const auto breaks = work.add(every(1, 30, 6));
  ASSERT_EQ(breaks.size(), 1U);
  EXPECT_EQ(breaks[0].last_end, at(10));
  EXPECT_EQ(breaks[0].first_end, at(30));
  ASSERT_EQ(work.runs(0).size(), 2U);
  expect_run(work.runs(0)[0], 0, 10, 10);
  expect_run(work.runs(0)[1], 30, 35, 5);
}

TEST(CountedWork, OtherWorkNoticedAtOnce) {
  CountedWork work;
  work.add(every(1, 0, 11));
  EXPECT_TRUE(work.enter_phase(1, {}).empty()) << "nothing of it has ended yet";
  const auto breaks = work.add(every(2, 12, 6));
  ASSERT_EQ(breaks.size(), 1U);
  EXPECT_FALSE(breaks[0].last_end) << "other work is no pause";
  expect_run(work.runs(0)[0], 0, 10, 10);
  expect_run(work.runs(1)[0], 12, 22, 5);
}

// Its ends are taken out of the old phase, and where it began is told: energy is cut there.
TEST(CountedWork, OtherWorkNoticedLater) {
  CountedWork work;
  work.add(every(1, 0, 11));
  work.add(every(2, 12, 6));
  const auto breaks = work.enter_phase(1, at(11.5));
  ASSERT_EQ(breaks.size(), 1U);
  EXPECT_EQ(breaks[0].first_end, at(12));
  EXPECT_FALSE(breaks[0].last_end);
  EXPECT_EQ(work.phase(), 1U);
  EXPECT_EQ(work.iterations(), 17U) << "each end counts once";
  ASSERT_EQ(work.runs(0).size(), 1U);
  expect_run(work.runs(0)[0], 0, 10, 10);
  ASSERT_EQ(work.runs(1).size(), 1U);
  expect_run(work.runs(1)[0], 12, 22, 5);
  EXPECT_TRUE(work.add(every(2, 24, 2)).empty()) << "the run goes on";
  EXPECT_EQ(work.runs(1)[0].iterations, 7U);
}

// Other work that follows a pause is a run of its own before it is known for what it is.
TEST(CountedWork, OtherWorkBehindAPause) {
  CountedWork work;
  work.add(every(1, 0, 11));
  work.add(every(2, 20, 6));
  ASSERT_EQ(work.runs(0).size(), 2U);
  const auto breaks = work.enter_phase(1, at(20));
  ASSERT_EQ(breaks.size(), 1U);
  ASSERT_EQ(work.runs(0).size(), 1U);
  expect_run(work.runs(0)[0], 0, 10, 10);
  ASSERT_EQ(work.runs(1).size(), 1U);
  expect_run(work.runs(1)[0], 20, 30, 5);
  EXPECT_EQ(work.iterations(), 17U);
}

TEST(CountedWork, EndsOfAnEarlierPhaseStayThere) {
  CountedWork work;
  work.add(every(1, 0, 11));
  work.enter_phase(1, {});
  work.add(every(1, 11, 6));
  work.enter_phase(2, at(5));
  expect_run(work.runs(0)[0], 0, 10, 10);
  EXPECT_TRUE(work.runs(1).empty());
  expect_run(work.runs(2)[0], 11, 16, 5);
}

TEST(CountedWork, WhatIsLongPastIsNotPutRight) {
  CountedWork work;
  work.add(every(1, 0, 201));
  work.enter_phase(1, at(20));
  // A minute of ends is kept; the oldest of them ends what stays.
  expect_run(work.runs(0)[0], 0, 140, 140);
  expect_run(work.runs(1)[0], 141, 200, 59);
}

TEST(CountedWork, WorkThatReturnsIsARunOfItsOwn) {
  CountedWork work;
  work.add(every(1, 0, 11));
  work.enter_phase(1, {});
  work.add(every(2, 12, 6));
  work.add(every(1, 23, 6));
  work.enter_phase(0, at(23));
  ASSERT_EQ(work.runs(0).size(), 2U);
  expect_run(work.runs(0)[1], 23, 28, 5);
  ASSERT_EQ(work.runs(1).size(), 1U);
  expect_run(work.runs(1)[0], 12, 22, 5);
}

TEST(CountedWork, RateIsOfTheLastTenSeconds) {
  CountedWork work;
  EXPECT_FALSE(work.rate(at(0)));
  work.add(every(0.5, 0, 60));
  EXPECT_NEAR(work.rate(at(29.5)).value(), 2, 1e-9);
  EXPECT_FALSE(work.rate(at(50)));
}

}  // namespace
}  // namespace gpoeo::control
