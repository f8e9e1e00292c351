// SPDX-License-Identifier: Apache-2.0
// RingProgress on real rings. A writer names its ring after its process, so rings of several
// processes are made one after the other and renamed.
#include "control/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "iteration/log_csv.h"
#include "iteration/testing/launch_programs.h"
#include "wire/ring_writer.h"

namespace gpoeo::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using wire::RecordKind;

class RingProgressTest : public ::testing::Test {
 protected:
  RingProgressTest() {
    std::string name = ::testing::TempDir() + "/gpoeo_progress_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder = name;
    progress = std::make_unique<RingProgress>(folder);
  }
  ~RingProgressTest() override { std::filesystem::remove_all(folder); }

  wire::RingWriter ring(const std::string& name,
                        std::uint32_t capacity = wire::kDefaultRingCapacity) {
    auto writer =
        wire::RingWriter::create(folder.string(), wire::RingProducer::kTwinJob, 0, capacity);
    if (!writer) ADD_FAILURE() << writer.error().text;
    std::filesystem::rename(folder / (std::to_string(::getpid()) + ".ring"),
                            folder / (name + ".ring"));
    return std::move(writer).value();
  }
  // Later than any look at the folder before it.
  void poll() {
    now += std::chrono::seconds(1);
    progress->poll(now);
  }
  static Instant at(std::int64_t ns) { return instant_from_ns(ns); }
  static void step(wire::RingWriter& writer, std::int64_t ns) {
    EXPECT_TRUE(writer.push(RecordKind::kStep, ns, 0, 0));
  }

  std::filesystem::path folder;
  std::unique_ptr<RingProgress> progress;
  Instant now = instant_from_ns(1'000'000'000'000);
};

TEST_F(RingProgressTest, NothingThereIsNoError) {
  poll();
  EXPECT_EQ(progress->source(), ProgressSource::kNone);
  EXPECT_THAT(progress->take_ends(), IsEmpty());
  RingProgress nowhere(folder / "not" / "yet");
  nowhere.poll(now);
  EXPECT_EQ(nowhere.source(), ProgressSource::kNone);
  EXPECT_THAT(nowhere.take_notes(), IsEmpty());
}

TEST_F(RingProgressTest, StepMarksCountAsTheyAre) {
  auto writer = ring("1");
  step(writer, 100);
  poll();
  const unsigned generation = progress->generation();
  (void)progress->take_ends();
  step(writer, 200);
  step(writer, 300);
  poll();
  EXPECT_EQ(progress->source(), ProgressSource::kStepMarks);
  EXPECT_THAT(progress->take_ends(), ElementsAre(at(200), at(300)));
  EXPECT_THAT(progress->take_ends(), IsEmpty()) << "each once";
  EXPECT_EQ(progress->generation(), generation);
}

// A job that steps twice a second is not to lose its first steps to the look-out for rings.
TEST_F(RingProgressTest, TheFirstStepsOfARingAreNotLost) {
  auto writer = ring("1");
  for (const std::int64_t t : {100, 200, 300}) step(writer, t);
  poll();
  EXPECT_THAT(progress->take_ends(), ElementsAre(at(100), at(200), at(300)));
}

TEST_F(RingProgressTest, WhatLiesBetweenEndAndBeginIsNoIteration) {
  auto writer = ring("1");
  step(writer, 100);
  poll();
  (void)progress->take_ends();
  const unsigned before = progress->generation();
  step(writer, 200);
  writer.push(RecordKind::kEndSteps, 210, 0, 0);
  writer.push(RecordKind::kBeginSteps, 900, 0, 0);  // validation between
  step(writer, 1000);
  step(writer, 1100);
  poll();
  const auto ends = progress->take_ends();
  EXPECT_THAT(ends, ::testing::Contains(at(1100)));
  // No iteration may span the validation unseen: 900 opens the count anew.
  EXPECT_THAT(ends, ::testing::Contains(at(900)));
  EXPECT_EQ(progress->generation(), before) << "it is the same work";
}

TEST_F(RingProgressTest, LaunchesAreCountedThroughWhatRepeats) {
  auto writer = ring("1");
  const auto program = iteration::testing::nested_program(3, 400, 1, 6);
  std::vector<Instant> ends;
  std::size_t i = 0;
  for (const auto& launch : program.launches) {
    writer.push(RecordKind::kKernelLaunch, launch.t_ns, launch.function_id, launch.stream);
    if (++i % 500 != 0) continue;
    poll();
    for (const Instant end : progress->take_ends()) ends.push_back(end);
  }
  poll();
  for (const Instant end : progress->take_ends()) ends.push_back(end);
  EXPECT_EQ(progress->source(), ProgressSource::kLaunchLog);
  ASSERT_GT(ends.size(), 200U);
  // One per iteration of the program, a constant launch apart from its end.
  EXPECT_TRUE(std::ranges::is_sorted(ends));
  const auto last =
      static_cast<double>(to_unix_ns(ends.back()) - to_unix_ns(ends[ends.size() - 101]));
  const auto& true_ends = program.end_ns;
  const auto expected = static_cast<double>(true_ends.back() - true_ends[true_ends.size() - 101]);
  EXPECT_NEAR(last / expected, 1, 0.05);
}

TEST_F(RingProgressTest, StepMarksBeatLaunches) {
  auto writer = ring("1");
  const auto program = iteration::testing::nested_program(3, 200, 1, 6);
  for (const auto& launch : program.launches) {
    writer.push(RecordKind::kKernelLaunch, launch.t_ns, launch.function_id, 0);
  }
  poll();
  ASSERT_EQ(progress->source(), ProgressSource::kLaunchLog);
  const unsigned before = progress->generation();
  (void)progress->take_ends();
  step(writer, program.launches.back().t_ns + 10);
  step(writer, program.launches.back().t_ns + 20);
  poll();
  EXPECT_EQ(progress->source(), ProgressSource::kStepMarks);
  EXPECT_GT(progress->generation(), before) << "launch repeats and steps do not compare";
}

TEST_F(RingProgressTest, FollowsTheProcessThatLaunchesMost) {
  auto quiet = ring("1");
  step(quiet, 10);
  poll();
  (void)progress->take_ends();
  const unsigned before = progress->generation();
  auto busy = ring("2");
  for (int i = 0; i < 50; ++i) step(busy, 1000 + i);
  poll();
  EXPECT_GT(progress->generation(), before);
  step(quiet, 2000);
  step(busy, 2001);
  poll();
  const auto ends = progress->take_ends();
  EXPECT_THAT(ends, ::testing::Contains(at(2001)));
  EXPECT_THAT(ends, ::testing::Not(::testing::Contains(at(2000))));
}

TEST_F(RingProgressTest, EqualProcessesAreNotSwappedToAndFro) {
  auto one = ring("1"), two = ring("2");
  step(one, 1);
  step(two, 2);
  poll();
  const unsigned before = progress->generation();
  for (int i = 0; i < 100; ++i) {
    step(one, 100 + 2 * i);
    step(two, 101 + 2 * i);
    if (i % 3 == 0) step(two, 101 + 2 * i);
    poll();
  }
  EXPECT_EQ(progress->generation(), before);
}

TEST_F(RingProgressTest, AnotherProcessTakesOverWhenTheFollowedOneHasEnded) {
  {
    auto first = ring("1");
    for (int i = 0; i < 100; ++i) step(first, i);
    poll();
  }
  const unsigned before = progress->generation();
  auto second = ring("2");
  step(second, 1000);
  poll();
  step(second, 2000);
  poll();
  EXPECT_GT(progress->generation(), before);
  EXPECT_THAT(progress->take_ends(), ::testing::Contains(at(2000)));
}

TEST_F(RingProgressTest, TheLastStepsOfAnEndedProcessCount) {
  {
    auto writer = ring("1");
    step(writer, 1);
    poll();
    (void)progress->take_ends();
    step(writer, 2);
  }
  poll();
  EXPECT_THAT(progress->take_ends(), ElementsAre(at(2)));
}

TEST_F(RingProgressTest, AFileThatIsNoRingIsToldOnceAndLeftAlone) {
  std::ofstream(folder / "9.ring") << "not a ring at all";
  std::ofstream(folder / "readme.txt") << "no ring either";
  poll();
  poll();
  const auto notes = progress->take_notes();
  ASSERT_THAT(notes, SizeIs(1));
  EXPECT_THAT(notes[0], HasSubstr("9.ring"));
  poll();
  EXPECT_THAT(progress->take_notes(), IsEmpty());
  auto good = ring("1");
  step(good, 5);
  poll();
  EXPECT_EQ(progress->source(), ProgressSource::kStepMarks);
}

TEST_F(RingProgressTest, ARingThatIsScribbledOverIsDroppedAndAnotherOneFollowed) {
  auto writer = ring("1", 16);
  for (int i = 0; i < 10; ++i) step(writer, i);
  poll();
  (void)progress->take_ends();
  {
    std::fstream file(folder / "1.ring", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(wire::kHeadOffset);
    const std::uint64_t absurd = ~std::uint64_t{0} - 5;
    file.write(reinterpret_cast<const char*>(&absurd), sizeof absurd);
  }
  poll();
  const auto notes = progress->take_notes();
  ASSERT_THAT(notes, SizeIs(1));
  EXPECT_THAT(notes[0], HasSubstr("no longer followed"));
  auto other = ring("2");
  for (int i = 0; i < 4; ++i) step(other, 1000 + i);
  poll();
  step(other, 2000);
  poll();
  EXPECT_THAT(progress->take_ends(), ::testing::Contains(at(2000)))
      << "a broken ring with more records is no reason to wait";
  EXPECT_THAT(progress->take_notes(), IsEmpty());
}

// A step of many micro-steps: they are what is counted first.
TEST_F(RingProgressTest, TheTotalIsRestatedWhenTheStepBecomesKnown) {
  auto writer = ring("1");
  const auto program = iteration::testing::nested_program(3, 30, 8, 6);
  std::size_t i = 0;
  bool counted_parts = false;
  for (const auto& launch : program.launches) {
    writer.push(RecordKind::kKernelLaunch, launch.t_ns, launch.function_id, launch.stream);
    if (++i % 64 != 0) continue;
    poll();
    (void)progress->take_ends();
    const auto done = static_cast<std::uint64_t>(std::ranges::count_if(
        program.end_ns, [&](std::int64_t end) { return end <= launch.t_ns; }));
    counted_parts |= progress->iterations().value() > done + 1;
  }
  EXPECT_TRUE(counted_parts) << "else this shows nothing";
  progress->finish(now);
  EXPECT_EQ(progress->iterations(), program.end_ns.size());
}

// Measured on an H200, with the true ends of the iterations; the end of the last one is missing
// there, though its launches are in the log (as many follow the last end as lie between two).
TEST_F(RingProgressTest, RecordedLaunchLogsAreCountedExactly) {
  const auto logs = std::filesystem::path(GPOEO_SOURCE_DIR) / "../shared/data/h200_launches";
  if (!std::filesystem::exists(logs)) GTEST_SKIP() << "no ../shared/data/h200_launches";
  for (const char* name :
       {"dcgan_alternating", "gpt2_medium_accum8", "t5_bucketed", "train_then_eval_phases"}) {
    const auto launches =
        iteration::read_launch_csv(logs / (std::string(name) + ".launches.csv.gz"));
    ASSERT_TRUE(launches) << launches.error().text;
    std::ifstream truth(logs / (std::string(name) + ".iterations.csv"));
    std::string line;
    std::uint64_t iterations = 0;
    std::getline(truth, line);
    while (std::getline(truth, line)) iterations += line.empty() ? 0 : 1;
    progress = std::make_unique<RingProgress>(folder);
    {
      auto writer = ring("1");
      std::size_t i = 0;
      for (const auto& l : *launches) {
        ASSERT_TRUE(writer.push(RecordKind::kKernelLaunch, l.t_ns, l.function_id, l.stream));
        if (++i % 1000 == 0) poll();
      }
      progress->finish(now);
    }
    EXPECT_EQ(progress->iterations(), iterations + 1) << name;
    std::filesystem::remove(folder / "1.ring");
  }
}

TEST_F(RingProgressTest, ProcessesOneAfterTheOtherAddUp) {
  auto first = std::make_optional(ring("1"));
  for (int t = 1; t <= 5; ++t) step(*first, t);
  poll();
  (void)progress->take_ends();
  first.reset();
  auto second = ring("2");
  for (int t = 10; t <= 12; ++t) step(second, t);
  poll();
  EXPECT_EQ(progress->iterations(), 8U);
}

TEST_F(RingProgressTest, MarksInARingOfTheirOwnComeBeforeLaunches) {
  auto launches = ring("1"), marks = ring("1.steps");
  const auto program = iteration::testing::nested_program(3, 50, 1, 6);
  for (const auto& l : program.launches) {
    launches.push(RecordKind::kKernelLaunch, l.t_ns, l.function_id, l.stream);
  }
  for (int t = 1; t <= 7; ++t) step(marks, t);
  poll();
  EXPECT_EQ(progress->source(), ProgressSource::kStepMarks);
  EXPECT_EQ(progress->iterations(), 7U);
  EXPECT_FALSE(progress->several_jobs());
}

TEST_F(RingProgressTest, SaysHowTheLaunchLogWent) {
  EXPECT_EQ(progress->launch_log(), "");
  auto writer = ring("1");
  writer.push(RecordKind::kKernelLaunch, 1, 1, 0);
  writer.mapping().set_cupti_version(130001);
  poll();
  EXPECT_EQ(progress->launch_log(), "running to the end, CUPTI 13.0");
  writer.set_state(wire::RingState::kQuiet, wire::QuietReason::kSteppedAside);
  poll();
  EXPECT_THAT(progress->launch_log(), HasSubstr("stopped: another CUPTI user"));
  EXPECT_THAT(progress->take_notes(), SizeIs(1));
}

TEST_F(RingProgressTest, ALogThatSawNothingSaysSo) {
  auto writer = ring("1");
  writer.mapping().set_cupti_version(18);  // seen: one too old for the driver tells of no launch
  poll();
  EXPECT_EQ(progress->launch_log(), "running, but it saw no launch, CUPTI version 18");
}

TEST_F(RingProgressTest, ADenseLogTellsWhatItCosts) {
  constexpr int kLaunches = 60'000;
  const auto log_of = [&](const char* name, std::int64_t apart_ns, std::uint32_t cupti) {
    auto writer = ring(name);
    if (cupti != 0) writer.mapping().set_cupti_version(cupti);
    for (int i = 0; i < kLaunches; ++i) {
      writer.push(RecordKind::kKernelLaunch, 1 + i * apart_ns, 1 + i % 7, 0);
    }
    progress = std::make_unique<RingProgress>(folder);
    poll();
    std::filesystem::remove(folder / (std::string(name) + ".ring"));
    return progress->launch_log();
  };
  EXPECT_THAT(log_of("1", 100'000, 130001), HasSubstr("10000 launches a second"));
  EXPECT_THAT(log_of("2", 100'000, 130001), HasSubstr("about 0.5 % (estimate)"));
  EXPECT_EQ(log_of("3", 1'000'000, 130001), "running to the end, CUPTI 13.0") << "0.05 %";
  EXPECT_EQ(log_of("4", 100'000, 0), "running to the end") << "a twin's job has no CUPTI";
}

TEST_F(RingProgressTest, DroppedRecordsAreToldOnce) {
  auto writer = ring("1", 16);
  poll();
  for (int i = 0; i < 40; ++i) writer.push(RecordKind::kKernelLaunch, i, 1, 0);
  poll();
  for (int i = 0; i < 40; ++i) writer.push(RecordKind::kKernelLaunch, i, 1, 0);
  poll();
  const auto notes = progress->take_notes();
  ASSERT_THAT(notes, SizeIs(1));
  EXPECT_THAT(notes[0], HasSubstr("dropped"));
  EXPECT_NEAR(progress->launches_lost(), 48.0 / 80, 1e-9) << "32 found room";
}

TEST_F(RingProgressTest, ARingThatGoesQuietIsTold) {
  auto writer = ring("1");
  step(writer, 1);
  poll();
  (void)progress->take_notes();
  writer.set_state(wire::RingState::kQuiet);
  poll();
  poll();
  const auto notes = progress->take_notes();
  ASSERT_THAT(notes, SizeIs(1));
  EXPECT_THAT(notes[0], HasSubstr("CUPTI"));
}

}  // namespace
}  // namespace gpoeo::control
