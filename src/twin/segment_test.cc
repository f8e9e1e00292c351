// SPDX-License-Identifier: Apache-2.0
// The shared-memory store: what several processes see of one card, and what happens when one of
// them dies. Time is manual except where the speed factor is what is tested.
#include "twin/segment.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "twin/testing/fixtures.h"

namespace gpoeo::twin {
namespace {

using testing::compute_job;
using testing::expect_ok;
using ::testing::HasSubstr;
using testing::quiet_device;

// A fresh path in the test's own folder.
class SegmentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "/twin-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    path_ = folder + "/machine";
  }
  void TearDown() override { std::filesystem::remove_all(path_.parent_path()); }

  std::unique_ptr<Segment> create(int cards = 1, double speed = 1, bool manual = true) {
    SegmentOptions options;
    for (int i = 0; i < cards; ++i) options.cards.push_back(quiet_device("h200"));
    options.speed = speed;
    options.manual_time = manual;
    return expect_ok(Segment::create(path_.string(), options));
  }
  std::unique_ptr<Segment> attach() { return expect_ok(Segment::attach(path_.string())); }

  std::filesystem::path path_;
};

void pass(Segment& segment, double seconds) {
  ASSERT_TRUE(segment.step(to_duration(Seconds(seconds))).has_value());
}

std::unique_ptr<Work> work(const Segment& segment, double iteration_s = 0.1) {
  return expect_ok(compile(compute_job(iteration_s), segment.device(0)));
}

// Runs `f` in a child process, which then exits (or is killed by `f`). Returns the wait status.
template <typename F>
int in_child(F f) {
  const pid_t child = fork();
  if (child == 0) {
    f();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST_F(SegmentTest, TwoAttachmentsSeeOneCard) {
  auto ours = create();
  auto theirs = attach();
  EXPECT_EQ(ours->name(0).uuid, theirs->name(0).uuid);
  expect_ok(ours->attach_job(0, *work(*ours), {}));
  pass(*theirs, 10);
  EXPECT_EQ(ours->now(), theirs->now());
  ASSERT_TRUE(CardFront(*theirs, 0).lock_sm_clocks({megahertz(345), megahertz(990)}).has_value());
  pass(*ours, 1);
  EXPECT_EQ(to_mhz(*CardFront(*ours, 0).sm_clock()), 990);
  EXPECT_EQ(CardFront(*ours, 0).power_instant()->value(),
            CardFront(*theirs, 0).power_instant()->value());
  EXPECT_EQ(expect_ok(truth(*ours, 0)).jobs.size(), 1U);
}

TEST_F(SegmentTest, WriteOfAnotherProcessIsSeen) {
  auto segment = create();
  const int status = in_child([&] {
    auto child = Segment::attach(path_.string());
    if (!child) _exit(3);
    if (!CardFront(**child, 0).lock_sm_clocks({megahertz(345), megahertz(990)})) _exit(4);
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(to_mhz(CardFront(*segment, 0).read_locks()->sm->max), 990);
}

TEST_F(SegmentTest, HolderKilledInsideTheCriticalSectionLeavesTheStateBefore) {
  auto segment = create();
  expect_ok(segment->attach_job(0, *work(*segment), {}));
  pass(*segment, 5);
  const double energy = expect_ok(truth(*segment, 0)).energy.value();
  for (int round = 0; round < 5; ++round) {
    const int status = in_child([&] {
      auto child = Segment::attach(path_.string());
      if (!child) _exit(3);
      static_cast<void>((*child)->visit(0, [](Card& card) -> Status {
        card.state.energy_j = -1;  // half-done nonsense
        card.state.sm_locked = 1;
        kill(getpid(), SIGKILL);
        return {};
      }));
    });
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(expect_ok(truth(*segment, 0)).energy.value(), energy);
    EXPECT_FALSE(CardFront(*segment, 0).read_locks()->sm.has_value());
  }
  pass(*segment, 5);
  EXPECT_GT(expect_ok(truth(*segment, 0)).energy.value(), energy);
}

TEST_F(SegmentTest, JobOfADeadProcessIsDropped) {
  auto segment = create();
  const int status = in_child([&] {
    auto child = Segment::attach(path_.string());
    if (!child || !(*child)->attach_job(0, *work(**child), {})) _exit(3);
  });
  ASSERT_EQ(status, 0);
  // Whoever asks next looks, but not more often than every 5 ms of wall time.
  for (int i = 0; i < 1000 && !CardFront(*segment, 0).compute_processes()->empty(); ++i)
    usleep(1000);
  const CardTruth after = expect_ok(truth(*segment, 0));
  ASSERT_EQ(after.jobs.size(), 1U);
  EXPECT_EQ(after.jobs[0].end, JobEnd::kDied);
  EXPECT_TRUE(CardFront(*segment, 0).event_reasons()->has(gpu::EventReasons::kGpuIdle));
}

TEST_F(SegmentTest, JobOfAnUnreapedChildIsDroppedToo) {
  auto segment = create();
  const pid_t child = fork();
  if (child == 0) {
    auto mine = Segment::attach(path_.string());
    if (!mine || !(*mine)->attach_job(0, *work(**mine), {})) _exit(3);
    _exit(0);
  }
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);  // a zombie now
  for (int i = 0; i < 1000 && !CardFront(*segment, 0).compute_processes()->empty(); ++i)
    usleep(1000);
  EXPECT_TRUE(CardFront(*segment, 0).compute_processes()->empty());
  waitpid(child, nullptr, 0);
}

TEST_F(SegmentTest, ReportsAJobsIterations) {
  auto segment = create();
  JobOptions options;
  options.iterations = 30;
  const JobHandle job = expect_ok(segment->attach_job(0, *work(*segment), options));
  pass(*segment, 1.05);
  const auto first = expect_ok(segment->job_news(0, job, 0));
  EXPECT_EQ(first.progress.iterations, 10);
  ASSERT_EQ(first.ends.size(), 10U);
  pass(*segment, 10);
  const auto rest = expect_ok(segment->job_news(0, job, 10));
  EXPECT_EQ(rest.ends.size(), 20U);
  EXPECT_EQ(rest.progress.state, JobEnd::kDone);
  EXPECT_TRUE(segment->detach_job(0, job).has_value());
  EXPECT_EQ(segment->job_news(0, job, 0).error().kind, ErrorKind::kNotFound);
}

TEST_F(SegmentTest, CardsHaveTheirOwnNamesAndStates) {
  auto segment = create(3);
  EXPECT_NE(segment->name(0).uuid, segment->name(1).uuid);
  EXPECT_NE(segment->name(0).pci_bus_id, segment->name(1).pci_bus_id);
  ASSERT_TRUE(CardFront(*segment, 1).lock_sm_clocks({megahertz(345), megahertz(990)}).has_value());
  EXPECT_FALSE(CardFront(*segment, 0).read_locks()->sm.has_value());
  EXPECT_EQ(CardFront(*segment, 3).sm_clock().error().kind, ErrorKind::kInvalid);
}

TEST_F(SegmentTest, WallTimeRunsWithTheSpeedFactor) {
  auto segment = create(1, 1000, /*manual=*/false);
  const Instant start = segment->now();
  const StopFlag never;
  segment->twin_clock().sleep_until(start + std::chrono::seconds(20), never);  // 20 ms of wall
  EXPECT_GE(segment->now(), start + std::chrono::seconds(20));
  EXPECT_EQ(segment->step(std::chrono::seconds(1)).error().kind, ErrorKind::kInvalid);
}

TEST_F(SegmentTest, ManualTimeStandsStill) {
  auto segment = create();
  const Instant start = segment->now();
  usleep(2000);
  EXPECT_EQ(segment->now(), start);
  pass(*segment, 1);
  EXPECT_EQ(segment->now(), start + std::chrono::seconds(1));
}

TEST_F(SegmentTest, FileIsPrivateAndNeverReplaced) {
  auto segment = create();
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  SegmentOptions options;
  options.cards = {quiet_device("h200")};
  const auto again = Segment::create(path_.string(), options);
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().kind, ErrorKind::kBusy);
  EXPECT_THAT(again.error().text, HasSubstr("twin remove"));
}

TEST_F(SegmentTest, RemoveNeverDeletesWhatIsNoTwin) {
  const std::string other = path_.string() + ".other";
  std::ofstream(other) << "somebody's file";
  for (const bool force : {false, true}) EXPECT_FALSE(Segment::remove(other, force).has_value());
  EXPECT_TRUE(std::filesystem::remove(other));
}

TEST_F(SegmentTest, RemoveRefusesWhileInUse) {
  auto segment = create();
  const Status refused = Segment::remove(path_.string());
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind, ErrorKind::kBusy);
  EXPECT_TRUE(Segment::remove(path_.string(), /*force=*/true).has_value());
  EXPECT_TRUE(CardFront(*segment, 0).sm_clock().has_value()) << "who has it keeps it";
  segment.reset();
  segment = create();
  segment.reset();
  EXPECT_TRUE(Segment::remove(path_.string()).has_value());
  EXPECT_EQ(Segment::remove(path_.string()).error().kind, ErrorKind::kNotFound);
}

TEST_F(SegmentTest, RefusesFilesThatAreNoTwin) {
  EXPECT_EQ(Segment::attach(path_.string()).error().kind, ErrorKind::kNotFound);
  ASSERT_TRUE(write_file_durably(path_, "short").has_value());
  EXPECT_THAT(Segment::attach(path_.string()).error().text, HasSubstr("too short"));
  ASSERT_TRUE(write_file_durably(path_, std::string(1 << 20, 'x')).has_value());
  EXPECT_THAT(Segment::attach(path_.string()).error().text, HasSubstr("some other file"));
  ASSERT_TRUE(write_file_durably(path_, std::string(1 << 20, 'x'), 0644).has_value());
  EXPECT_EQ(Segment::attach(path_.string()).error().kind, ErrorKind::kNoPermission);
}

// Overwrites `bytes` at `offset`.
void scribble(const std::filesystem::path& path, std::streamoff offset, std::string_view bytes) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(offset);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

TEST_F(SegmentTest, RefusesAnotherVersionAndWrongSizes) {
  create().reset();
  scribble(path_, 8, std::string("\x63\0\0\0", 4));
  EXPECT_THAT(Segment::attach(path_.string()).error().text, HasSubstr("version 99"));
  std::filesystem::remove(path_);
  create().reset();
  scribble(path_, 12, std::string("\x02\0\0\0", 4));  // two cards in a file for one
  EXPECT_THAT(Segment::attach(path_.string()).error().text, HasSubstr("sizes"));
  std::filesystem::remove(path_);
  create().reset();
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 4096);
  EXPECT_THAT(Segment::attach(path_.string()).error().text, HasSubstr("sizes"));
}

TEST_F(SegmentTest, EnvironmentNamesIt) {
  auto segment = create();
  ASSERT_EQ(setenv(kSegmentEnvironment, path_.c_str(), 1), 0);
  EXPECT_TRUE(Segment::attach_from_environment().has_value());
  unsetenv(kSegmentEnvironment);
  EXPECT_EQ(Segment::attach_from_environment().error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(Segment::path_of("lab"), "/dev/shm/gpoeo-twin-lab");
  EXPECT_EQ(Segment::path_of("./lab"), "./lab");
}

}  // namespace
}  // namespace gpoeo::twin
