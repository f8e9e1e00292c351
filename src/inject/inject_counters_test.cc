// SPDX-License-Identifier: Apache-2.0
// Counter windows of libgpoeo_inject.so in a program that launches through a fake CUPTI.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/activity.h"
#include "inject/testing/injected_program.h"

namespace gpoeo::inject {
namespace {

using ::testing::HasSubstr;

class Counters : public testing::InjectedProgram {
 protected:
  // Up to the program's first "wait", with a request for a window of `most_ns`.
  void start_and_ask(std::vector<std::string> steps, std::uint64_t most_ns = 1'000'000) {
    steps.insert(steps.begin(), {"init", "train", "1", "wait"});
    start(std::move(steps));
    await_waiting();
    ring_.emplace(only_ring());
    ASSERT_TRUE(ring_->request_counters(1, most_ns));
  }
  void leave_list() {
    std::ofstream(rings_ / wire::kCounterMetricsFile)
        << "chip GH100\npass\nsm_active sm__cycles.avg.pct_of_peak\n"
           "l1_hit_rate never__happened.ratio\npcie_tx_bytes_per_s pcie__write.sum.per_second\n";
  }
  std::optional<wire::CounterBlock> answer() { return ring_->counters().value(); }

  std::optional<wire::RingReader> ring_;
};

TEST_F(Counters, ARequestThatCannotBeServedIsAnswered) {
  start_and_ask({"train", "1"});
  go_on();
  EXPECT_EQ(finish(), 0);
  ASSERT_TRUE(answer());
  EXPECT_EQ(answer()->window, 1U);
  EXPECT_EQ(answer()->error, wire::CounterError::kUnsupported);
}

TEST_F(Counters, SayWhatWasSampledOfWhichDeviceAndNothingElse) {
  start_and_ask({"sampling", "sampled"});
  leave_list();
  go_on();
  EXPECT_EQ(finish(), 0);
  ASSERT_TRUE(answer());
  const wire::CounterBlock block = *answer();
  ASSERT_EQ(block.error, wire::CounterError::kNone);
  EXPECT_EQ(block.device_ordinal, 1U) << "asked while the launch's context was there";
  ASSERT_EQ(block.count, 2U) << "what no sample has a value of is left out";
  EXPECT_EQ(block.values[0].metric, find_activity("sm_active")->number);
  EXPECT_EQ(block.values[0].value, 0.5);
  EXPECT_EQ(block.values[1].metric, find_activity("pcie_tx_bytes_per_s")->number);
  const auto span = static_cast<std::uint64_t>(block.end_ns - block.begin_ns);
  EXPECT_GT(block.covered_ns, 0U);
  EXPECT_LE(block.covered_ns, span);
  EXPECT_EQ(block.covered_ns % 2'000'000, 0U) << "whole samples";
}

TEST_F(Counters, WithoutATimerOnTheCardThereAreNone) {
  environment_["FAKE_PM_NO_TIMER"] = "1";
  start_and_ask({"paced", "50"});
  leave_list();
  go_on();
  EXPECT_EQ(finish(), 0);
  ASSERT_TRUE(answer());
  EXPECT_EQ(answer()->error, wire::CounterError::kUnsupported);
  EXPECT_EQ(answer()->count, 0U);
}

TEST_F(Counters, ACuptiWithoutThemIsToldAndLaunchesAreLoggedAllTheSame) {
  environment_["LD_LIBRARY_PATH"] = GPOEO_CUPTI_WITHOUT_COUNTERS;
  start_and_ask({"paced", "20"});
  leave_list();
  go_on();
  EXPECT_EQ(finish(), 0);
  EXPECT_THAT(drain(*ring_), ::testing::SizeIs(21 * 40));
  ASSERT_TRUE(answer());
  EXPECT_EQ(answer()->error, wire::CounterError::kUnsupported);
}

TEST_F(Counters, OfManyThreadsThatLaunchOneTakesTheRequestUp) {
  environment_["FAKE_SLOW_STARTER"] = "1";
  start_and_ask({"two-threads"});
  go_on();
  EXPECT_EQ(finish(), 0);
  ASSERT_TRUE(answer());
  EXPECT_EQ(answer()->sequence, 2U) << "one answer";
}

TEST_F(Counters, AProfilerThatComesFindsThemFreeAndKeepsWhatItTakes) {
  start_and_ask({"sampling", "profile", "profiler-interface", "paced", "100", "ask-interface"},
                20'000'000'000);
  leave_list();
  go_on();
  EXPECT_EQ(finish(), 0);
  EXPECT_THAT(text("out"), HasSubstr("profiler 0, counters open 0"));
  EXPECT_THAT(text("out"), HasSubstr("interface 1"));
}

TEST_F(Counters, AProfilerThatComesDoesNotWaitForACuptiThatIsStuck) {
  environment_["FAKE_PM_STUCK"] = "1";
  start_and_ask(
      {"sampling", "profile", "profiler-interface", "sampled", "paced", "50", "ask-interface"},
      20'000'000'000);
  leave_list();
  go_on();
  EXPECT_EQ(finish(), 0);
  EXPECT_THAT(text("out"), HasSubstr("profiler 0, counters open 2"));
  EXPECT_THAT(text("out"), HasSubstr("interface 1"));
}

}  // namespace
}  // namespace gpoeo::inject
