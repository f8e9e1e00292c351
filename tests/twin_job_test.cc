// SPDX-License-Identifier: Apache-2.0
// gpoeo-twin-job as its users run it: the real program on a shared simulated card.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "twin/device_spec.h"
#include "twin/judge.h"
#include "twin/segment.h"
#include "wire/ring_reader.h"

extern char** environ;

namespace gpoeo {
namespace {

using ::testing::HasSubstr;

class TwinJob : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "/twinjob-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    const auto device = twin::find_device("a100");
    ASSERT_TRUE(device.has_value()) << device.error().text;
    twin::SegmentOptions options;
    options.cards = {*device, *device};
    options.speed = 500;
    auto created = twin::Segment::create((folder_ / "machine").string(), options);
    ASSERT_TRUE(created.has_value()) << created.error().text;
    segment_ = std::move(*created);
    setenv(twin::kSegmentEnvironment, segment_->path().c_str(), 1);
    setenv(wire::kRingDirEnv, folder_.c_str(), 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
  }
  void TearDown() override {
    unsetenv(twin::kSegmentEnvironment);
    unsetenv(wire::kRingDirEnv);
    std::filesystem::remove_all(folder_);
  }

  // Runs the program; returns the wait status. What it said is in `said_`.
  int run(std::vector<std::string> arguments) {
    const std::string output = (folder_ / "output").string();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    std::vector<char*> argv = {const_cast<char*>(GPOEO_TWIN_JOB)};
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    EXPECT_EQ(posix_spawn(&pid_, GPOEO_TWIN_JOB, &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    waitpid(pid_, &status, 0);
    said_ = read_file(output).value_or("");
    return status;
  }
  twin::CardTruth truth(unsigned card = 0) {
    auto result = twin::truth(*segment_, card);
    EXPECT_TRUE(result.has_value());
    return result.value_or(twin::CardTruth{});
  }

  std::filesystem::path folder_;
  std::unique_ptr<twin::Segment> segment_;
  pid_t pid_ = 0;
  std::string said_;
};

TEST_F(TwinJob, DoesItsIterationsAndLogsLaunchesAndSteps) {
  ASSERT_EQ(run({"lstm", "--iterations", "50", "--progress", "both"}), 0) << said_;
  EXPECT_THAT(said_, HasSubstr("50 iterations"));
  const auto card = truth();
  ASSERT_EQ(card.jobs.size(), 1U);
  EXPECT_EQ(card.jobs[0].iterations, 50);
  EXPECT_EQ(card.jobs[0].end, twin::JobEnd::kDone);

  auto ring = wire::RingReader::open(folder_ / (std::to_string(pid_) + wire::kRingSuffix));
  ASSERT_TRUE(ring.has_value()) << ring.error().text;
  std::vector<wire::RingRecord> records;
  ASSERT_TRUE(ring->drain(records).has_value());
  EXPECT_EQ(ring->state(), wire::RingState::kEnded);
  EXPECT_EQ(ring->dropped(), 0U);
  std::int64_t steps = 0, last_ns = 0;
  std::map<std::uint64_t, int> launches;
  for (const wire::RingRecord& record : records) {
    EXPECT_GE(record.t_ns, last_ns);
    last_ns = record.t_ns;
    if (record.kind == wire::RecordKind::kStep)
      ++steps;
    else
      ++launches[record.function_id];
  }
  EXPECT_EQ(steps, 50);
  EXPECT_EQ(last_ns, card.jobs[0].end_ns) << "on the twin's own time";
  EXPECT_EQ(launches.size(), 130U);
  for (const auto& [function, count] : launches) EXPECT_EQ(count, 50) << function;
}

TEST_F(TwinJob, SecondsAreCountedAtDefaultClocks) {
  ASSERT_EQ(run({"lammps", "--seconds", "20", "--iteration-seconds", "0.25", "--steady"}), 0)
      << said_;
  EXPECT_EQ(truth().jobs[0].iterations, 80);
}

TEST_F(TwinJob, RunsOnTheVisibleCard) {
  setenv("CUDA_VISIBLE_DEVICES", segment_->name(1).uuid.substr(0, 20).c_str(), 1);
  ASSERT_EQ(run({"lstm", "--iterations", "5"}), 0) << said_;
  EXPECT_TRUE(truth(0).jobs.empty());
  EXPECT_EQ(truth(1).jobs.size(), 1U);
  setenv("CUDA_VISIBLE_DEVICES", "7", 1);
  EXPECT_EQ(WEXITSTATUS(run({"lstm", "--iterations", "5"})), 1);
  EXPECT_THAT(said_, HasSubstr("CUDA_VISIBLE_DEVICES=7"));
}

TEST_F(TwinJob, CrashLeavesTheCardUsableAndTheJobDropped) {
  const int status = run({"lstm", "--seconds", "5000", "--crash-after", "5"});
  ASSERT_TRUE(WIFSIGNALED(status)) << said_;
  EXPECT_EQ(WTERMSIG(status), SIGABRT);
  for (int i = 0; i < 1000 && truth().jobs[0].end == twin::JobEnd::kRunning; ++i) usleep(1000);
  EXPECT_EQ(truth().jobs[0].end, twin::JobEnd::kDied);
}

TEST_F(TwinJob, SaysInOneLineWhatIsWrong) {
  EXPECT_EQ(WEXITSTATUS(run({"nosuch"})), 1);
  EXPECT_THAT(said_, HasSubstr("LAMMPS"));
  EXPECT_EQ(std::count(said_.begin(), said_.end(), '\n'), 1);
  EXPECT_EQ(WEXITSTATUS(run({"lstm", "--seconds", "-3"})), 2);
  EXPECT_EQ(WEXITSTATUS(run({})), 2);
  unsetenv(twin::kSegmentEnvironment);
  EXPECT_EQ(WEXITSTATUS(run({"lstm"})), 1);
  EXPECT_THAT(said_, HasSubstr("GPOEO_TWIN is not set"));
}

}  // namespace
}  // namespace gpoeo
