// SPDX-License-Identifier: Apache-2.0
// libgpoeo_inject.so in a program that launches through a fake CUPTI: what reaches the ring, and
// that the program never notices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <map>
#include <set>
#include <string>

#include "inject/testing/injected_program.h"

namespace gpoeo::inject {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using wire::QuietReason;
using wire::RingState;
namespace fs = std::filesystem;
using Injected = testing::InjectedProgram;

TEST_F(Injected, EachLaunchIsOneRecord) {
  EXPECT_EQ(run({"init", "train", "100"}), 0);
  auto ring = only_ring();
  const auto records = drain(ring);
  EXPECT_THAT(records, SizeIs(4000));
  std::set<std::uint64_t> ids;
  for (std::size_t i = 0; i < records.size(); ++i) {
    ids.insert(records[i].function_id);
    EXPECT_EQ(records[i].function_id, records[i % 40].function_id);
    EXPECT_EQ(records[i].stream, records[0].stream);
    EXPECT_GE(records[i].t_ns, records[i > 0 ? i - 1 : 0].t_ns);
  }
  EXPECT_THAT(ids, SizeIs(40)) << "function and grid together make a kind";
  EXPECT_GT(records[0].t_ns, 1'600'000'000'000'000'000) << "since the epoch";
  EXPECT_EQ(ring.cupti_version(), 26U);
  EXPECT_EQ(ring.state(), RingState::kRunning);
  EXPECT_EQ(ring.header().producer, wire::RingProducer::kInjectedLibrary);
  EXPECT_EQ(text("err"), "");
}

TEST_F(Injected, AllKindsOfLaunchesAreSeen) {
  EXPECT_EQ(run({"init", "kinds"}), 0);
  auto ring = only_ring();
  const auto records = drain(ring);
  EXPECT_THAT(records, SizeIs(12));
  EXPECT_EQ(std::ranges::count(records, wire::RecordKind::kGraphLaunch, &wire::RingRecord::kind),
            2);
}

TEST_F(Injected, FourThreadsLoseNothingAndMixNothingUp) {
  EXPECT_EQ(run({"init", "threads", "15000"}), 0);
  auto ring = only_ring();
  const auto records = drain(ring);
  EXPECT_THAT(records, SizeIs(60000));
  std::map<std::uint32_t, std::set<std::uint64_t>> functions_of_stream;
  for (const auto& r : records) functions_of_stream[r.stream].insert(r.function_id);
  EXPECT_THAT(functions_of_stream, SizeIs(4));
  for (const auto& [stream, functions] : functions_of_stream) EXPECT_THAT(functions, SizeIs(1));
}

TEST_F(Injected, AFullRingDropsAndCountsAndTheJobGoesOn) {
  EXPECT_EQ(run({"init", "train", "2000"}), 0);
  EXPECT_THAT(text("out"), HasSubstr("launches 80000"));
  auto ring = only_ring();
  EXPECT_THAT(drain(ring), SizeIs(wire::kDefaultRingCapacity));
  EXPECT_EQ(ring.dropped(), 80000 - wire::kDefaultRingCapacity);
}

TEST_F(Injected, AProfilerThatWasThereFirstStaysAlone) {
  EXPECT_EQ(run({"profile", "init", "train", "10"}), 0);
  EXPECT_THAT(text("out"), HasSubstr("profiler 0"));
  auto ring = only_ring();
  EXPECT_THAT(drain(ring), SizeIs(0));
  EXPECT_EQ(ring.state(), RingState::kQuiet);
  EXPECT_EQ(ring.reason(), QuietReason::kOtherSubscriber);
}

TEST_F(Injected, MakesWayForAProfilerThatComesLater) {
  for (const char* how : {"profile", "profile-by-name"}) {
    fs::remove_all(rings_);
    fs::create_directory(rings_);
    EXPECT_EQ(run({"init", "train", "10", how, "train", "10", "unprofile", "train", "10"}), 0);
    EXPECT_THAT(text("out"), HasSubstr("profiler 0")) << how << ": it gets CUPTI at once";
    auto ring = only_ring();
    EXPECT_THAT(drain(ring), SizeIs(400)) << "until it came";
    EXPECT_EQ(ring.state(), RingState::kQuiet);
    EXPECT_EQ(ring.reason(), QuietReason::kSteppedAside);
  }
}

TEST_F(Injected, AnUnknownCuptiIsLeftAlone) {
  for (const char* version : {"12", "140000"}) {
    fs::remove_all(rings_);
    fs::create_directory(rings_);
    environment_["FAKE_CUPTI_VERSION"] = version;
    EXPECT_EQ(run({"init", "train", "10"}), 0);
    auto ring = only_ring();
    EXPECT_THAT(drain(ring), SizeIs(0));
    EXPECT_EQ(ring.reason(), QuietReason::kCuptiUnknown);
  }
}

TEST_F(Injected, WithoutCuptiTheJobRunsAndTheReasonIsTold) {
  program_ = GPOEO_PROGRAM_WITHOUT_CUPTI;
  EXPECT_EQ(run({}), 0);
  EXPECT_EQ(text("out"), "injection 1\ndone\n");
  EXPECT_EQ(text("err"), "");
  auto ring = only_ring();
  EXPECT_THAT(drain(ring), SizeIs(0));
  EXPECT_EQ(ring.state(), RingState::kQuiet);
  EXPECT_EQ(ring.reason(), QuietReason::kNoCupti);
  EXPECT_EQ(ring.cupti_version(), 0U);
}

TEST_F(Injected, ACuptiThatLacksWhatIsNeededIsLeftAlone) {
  environment_["LD_LIBRARY_PATH"] = GPOEO_CUPTI_WITHOUT_CALLBACKS;
  EXPECT_EQ(run({"init", "train", "10", "profile"}), 0);
  EXPECT_THAT(text("out"), HasSubstr("launches 400"));
  EXPECT_THAT(text("out"), HasSubstr("profiler 0")) << "free for others";
  auto ring = only_ring();
  EXPECT_THAT(drain(ring), SizeIs(0));
  EXPECT_EQ(ring.reason(), QuietReason::kCuptiUnknown);
}

TEST_F(Injected, AForkedChildIsQuietAndItsParentIsNot) {
  EXPECT_EQ(run({"init", "train", "3", "fork", "train", "3"}), 0);
  auto ring = only_ring();
  EXPECT_THAT(drain(ring), SizeIs(240));
  EXPECT_EQ(ring.state(), RingState::kRunning);
}

TEST_F(Injected, AChildThatUsesCudaFirstHasItsOwnRing) {
  EXPECT_EQ(run({"fork-init", "init", "train", "2"}), 0);
  std::multiset<std::size_t> sizes;
  for (const auto& file : ring_files()) {
    auto ring = wire::RingReader::open(file).value();
    sizes.insert(drain(ring).size());
  }
  EXPECT_EQ(sizes, (std::multiset<std::size_t>{80, 200}));
}

TEST_F(Injected, ExecStartsAnew) {
  EXPECT_EQ(run({"init", "train", "3", "exec"}), 0);
  auto ring = only_ring();  // the same process: its new ring took the place of the old one
  EXPECT_THAT(drain(ring), SizeIs(280));
}

TEST_F(Injected, WhatWasLaunchedBeforeASuddenEndIsThere) {
  for (const char* end : {"_exit", "abort"}) {
    fs::remove_all(rings_);
    fs::create_directory(rings_);
    EXPECT_NE(run({"init", "train", "5", end}), 0);
    auto ring = only_ring();
    EXPECT_THAT(drain(ring), SizeIs(200)) << end;
  }
  fs::remove_all(rings_);
  fs::create_directory(rings_);
  start({"init", "train", "5", "wait"});
  await_waiting();
  kill(pid_, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(finish()));
  auto ring = only_ring();
  EXPECT_THAT(drain(ring), SizeIs(200));
}

TEST_F(Injected, ARingFolderThatGoesAwayDoesNotMatter) {
  start({"init", "train", "5", "wait", "train", "5"});
  await_waiting();
  fs::remove_all(rings_);
  go_on();
  EXPECT_EQ(finish(), 0);
  EXPECT_THAT(text("out"), HasSubstr("launches 400"));
  EXPECT_FALSE(fs::exists(rings_));
}

TEST_F(Injected, WithoutAFolderNothingHappens) {
  environment_["GPOEO_RING_DIR"] = "";
  EXPECT_EQ(run({"init", "train", "5"}), 0);
  environment_["GPOEO_RING_DIR"] = (folder_ / "missing").string();
  EXPECT_EQ(run({"init", "train", "5"}), 0);
  EXPECT_EQ(text("err"), "");
  EXPECT_THAT(ring_files(), SizeIs(0));
}

TEST_F(Injected, SaysWhatItDoesWhenAsked) {
  environment_["GPOEO_INJECT_LOG"] = "1";
  EXPECT_EQ(run({"init", "train", "1"}), 0);
  EXPECT_THAT(text("err"), HasSubstr("gpoeo-inject["));
}

}  // namespace
}  // namespace gpoeo::inject
