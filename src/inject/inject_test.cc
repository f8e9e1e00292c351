// SPDX-License-Identifier: Apache-2.0
// libgpoeo_inject.so in a program that launches through a fake CUPTI: what reaches the ring, and
// that the program never notices.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "wire/ring_reader.h"

namespace gpoeo::inject {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using wire::QuietReason;
using wire::RingState;
namespace fs = std::filesystem;

class Injected : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "gpoeo-inject-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    rings_ = folder_ / "rings";
    fs::create_directory(rings_);
    environment_ = {{"CUDA_INJECTION64_PATH", GPOEO_INJECT}, {"GPOEO_RING_DIR", rings_.string()}};
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Starts the program and returns at once; its output goes to a file.
  void start(std::vector<std::string> words) {
    int to_it[2];
    ASSERT_EQ(pipe(to_it), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(to_it[0], STDIN_FILENO);
      close(to_it[1]);
      const int out = open((folder_ / "out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(out, STDOUT_FILENO);
      const int err = open((folder_ / "err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(err, STDERR_FILENO);
      for (const auto& [name, value] : environment_) setenv(name.c_str(), value.c_str(), 1);
      std::vector<char*> arguments{const_cast<char*>(GPOEO_FAKE_PROGRAM)};
      for (std::string& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      execv(GPOEO_FAKE_PROGRAM, arguments.data());
      _exit(127);
    }
    close(to_it[0]);
    to_it_ = to_it[1];
  }
  int finish() {
    int status = 0;
    waitpid(pid_, &status, 0);
    close(to_it_);
    return status;
  }
  int run(std::vector<std::string> words) {
    start(std::move(words));
    return finish();
  }
  std::string text(const char* name) { return read_file(folder_ / name).value_or(""); }
  // Until the program waits at its (n-th) "wait".
  void await_waiting(int n = 1) {
    for (int tries = 0; tries < 3000; ++tries) {
      const std::string out = text("out");
      int seen = 0;
      for (std::size_t at = out.find("waiting"); at != std::string::npos;
           at = out.find("waiting", at + 1)) {
        ++seen;
      }
      if (seen >= n) return;
      usleep(10'000);  // another process, on wall time
    }
    FAIL() << "the program did not come so far";
  }
  void go_on() { ASSERT_EQ(write(to_it_, "\n", 1), 1); }

  std::vector<fs::path> ring_files() const {
    std::vector<fs::path> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(rings_, error)) files.push_back(entry.path());
    return files;
  }
  wire::RingReader only_ring() {
    const auto files = ring_files();
    EXPECT_THAT(files, SizeIs(1));
    return wire::RingReader::open(files.at(0)).value();
  }
  static std::vector<wire::RingRecord> drain(wire::RingReader& ring) {
    std::vector<wire::RingRecord> records;
    EXPECT_TRUE(ring.drain(records));
    return records;
  }

  fs::path folder_, rings_;
  std::map<std::string, std::string> environment_;
  pid_t pid_ = -1;
  int to_it_ = -1;
};

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

TEST_F(Injected, ACounterRequestThatCannotBeServedIsAnswered) {
  start({"init", "train", "1", "wait", "train", "1"});
  await_waiting();
  auto ring = only_ring();
  ASSERT_TRUE(ring.request_counters(1, 1'000'000));
  go_on();
  EXPECT_EQ(finish(), 0);
  const auto answer = ring.counters().value();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->window, 1U);
  EXPECT_EQ(answer->error, wire::CounterError::kUnsupported);
}

}  // namespace
}  // namespace gpoeo::inject
