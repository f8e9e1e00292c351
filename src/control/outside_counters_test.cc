// SPDX-License-Identifier: Apache-2.0
// Counters from a process beside the job; the process is a script of the test's.
#include "control/outside_counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

namespace gpoeo::control {
namespace {

using ::testing::HasSubstr;

class OutsideCountersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/gpoeo_outside_XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    progress_.emplace(folder_ / "rings");
  }
  void TearDown() override {
    source_.reset();
    std::filesystem::remove_all(folder_);
  }

  // A program that does what a shell script says, for each of `gpus`.
  void open(const std::string& script, std::vector<std::string> gpus = {"GPU-0"}) {
    const auto program = folder_ / "tool";
    std::ofstream(program) << "#!/bin/sh\n" << script << "\n";
    ::chmod(program.c_str(), 0700);
    source_.emplace(*progress_, OutsideCounterOptions{.program = program,
                                                      .metrics_file = folder_ / "list",
                                                      .gpus = std::move(gpus)});
  }
  Result<CounterReading> answer(std::span<const Instant> ends = {}) {
    for (int tries = 0; tries < 2000; ++tries) {
      if (auto answer = source_->poll(kNow, ends, false)) return *answer;
      ::usleep(5000);  // another process, on wall time
    }
    return make_error(ErrorKind::kTimeout, "the test's program did not end");
  }
  std::string read(const char* name) { return read_file(folder_ / name).value_or(""); }

  static constexpr Instant kNow = instant_from_ns(1'000'000'000'000);
  std::filesystem::path folder_;
  std::optional<RingProgress> progress_;
  std::optional<OutsideCounters> source_;
};

constexpr char kGood[] =
    R"(echo '{"passes":4,"begin_unix_ns":1000000000000,"end_unix_ns":1004000000000,"covered_s":3.0,)"
    R"("values":{"sm_active":0.8,"dram_active":0.25}}')";

TEST_F(OutsideCountersTest, TellWhatTheProgramPrints) {
  open(std::string("echo \"$@\" > ") + (folder_ / "words").string() + "\n" + kGood);
  ASSERT_TRUE(source_->begin(kNow, Seconds(0.25)));
  std::vector<Instant> ends;
  for (int i = 0; i <= 13; ++i) ends.push_back(kNow + std::chrono::milliseconds(300 * i));
  const auto reading = answer(ends);
  ASSERT_TRUE(reading) << reading.error().text;
  EXPECT_EQ(reading->activity.sm_active, 0.8);
  EXPECT_EQ(reading->activity.dram_active, 0.25);
  EXPECT_FALSE(reading->activity.tensor_active);
  EXPECT_EQ(reading->origin, CounterOrigin::kPmSampling);
  EXPECT_NEAR(reading->counted.value(), 3, 1e-9);
  EXPECT_NEAR(reading->iterations, 10, 1e-9) << "as long as they were meanwhile";
  const std::string words = read("words");
  EXPECT_THAT(words, HasSubstr("--gpu GPU-0"));
  EXPECT_THAT(words, HasSubstr("--iteration 0.250000"));
}

TEST_F(OutsideCountersTest, AreTheMeanOverTheJobsGpus) {
  open(R"(case "$*" in *GPU-0*) v=0.4;; *) v=0.8;; esac
echo "{\"begin_unix_ns\":1,\"end_unix_ns\":2000000001,\"covered_s\":1,\"values\":{\"sm_active\":$v}}")",
       {"GPU-0", "GPU-1"});
  ASSERT_TRUE(source_->begin(kNow, Seconds(0.25)));
  const auto reading = answer();
  ASSERT_TRUE(reading) << reading.error().text;
  EXPECT_NEAR(*reading->activity.sm_active, 0.6, 1e-12);
}

TEST_F(OutsideCountersTest, AnErrorIsTheProgramsOwnWords) {
  open(R"(echo '{"error":"another profiler holds the counters"}'; exit 1)");
  ASSERT_TRUE(source_->begin(kNow, Seconds(0.25)));
  const auto reading = answer();
  ASSERT_FALSE(reading);
  EXPECT_THAT(reading.error().text, HasSubstr("another profiler"));
}

TEST_F(OutsideCountersTest, WhateverElseItPrintsIsAnErrorAndNothingWorse) {
  const char* const kScripts[] = {
      "exit 0",
      "echo nonsense",
      "echo '[1,2]'",
      "echo '{}'",
      "kill -9 $$",
      R"(echo '{"error":7}')",
      R"(echo '{"begin_unix_ns":1,"end_unix_ns":2,"values":{"sm_active":17,"what":1}}')",
      R"(echo '{"begin_unix_ns":1,"end_unix_ns":9223372036854775807,"covered_s":-1e300,)"
      R"("values":{"sm_active":0.5}}')",
      R"(echo '{"begin_unix_ns":0,"end_unix_ns":1000000000,"covered_s":2,"values":{"sm_active":0.5}}')",
      R"(echo '{"begin_unix_ns":2,"end_unix_ns":1,"values":{"sm_active":0.5}}')",
      R"(echo '{"begin_unix_ns":"x","end_unix_ns":[],"values":{"sm_active":"y"}}')",
      "while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done"};
  for (const char* script : kScripts) {
    open(script);
    ASSERT_TRUE(source_->begin(kNow, Seconds(0.25))) << script;
    EXPECT_FALSE(answer()) << script;
    source_->cancel();
  }
}

TEST_F(OutsideCountersTest, AProgramThatIsNotThereIsToldAtOnce) {
  source_.emplace(
      *progress_,
      OutsideCounterOptions{.program = folder_ / "no such", .metrics_file = {}, .gpus = {"GPU-0"}});
  const Status begun = source_->begin(kNow, Seconds(0.25));
  ASSERT_FALSE(begun);
  EXPECT_THAT(begun.error().text, HasSubstr("no such"));
}

TEST_F(OutsideCountersTest, GivenUpTheProgramIsAskedToEndAndGoesWithUs) {
  const std::string started = (folder_ / "started").string();
  open("echo $$ > " + started + "\ncat > /dev/null\necho ended > " + (folder_ / "ended").string());
  ASSERT_TRUE(source_->begin(kNow, Seconds(0.25)));
  for (int i = 0; i < 2000 && read("started").empty(); ++i) ::usleep(5000);
  source_->cancel();
  for (int i = 0; i < 2000 && read("ended").empty(); ++i) ::usleep(5000);
  EXPECT_EQ(read("ended"), "ended\n") << "its input was closed";

  std::filesystem::remove(started);
  open("echo $$ > " + started + "\nexec sleep 1000");
  ASSERT_TRUE(source_->begin(kNow, Seconds(0.25)));
  std::string pid;
  for (int i = 0; i < 2000 && (pid = read("started")).size() < 2; ++i) ::usleep(5000);
  source_.reset();
  EXPECT_NE(::kill(std::stoi(pid), 0), 0) << "nothing of it is left, no zombie either";
}

}  // namespace
}  // namespace gpoeo::control
