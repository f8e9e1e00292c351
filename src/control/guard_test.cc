// SPDX-License-Identifier: Apache-2.0
// The journal and the guard on a simulated A100, with faults.
#include "control/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "gpu/testing/faulty_device.h"
#include "gpu/testing/recording_device.h"
#include "twin/testing/fixtures.h"
#include "twin/twin_device.h"

namespace gpoeo::control {
namespace {

using gpu::testing::Call;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr gpu::ClockRange kLow{Hertz(210e6), Hertz(1200e6)};
constexpr gpu::ClockRange kLower{Hertz(210e6), Hertz(900e6)};

class StateDir {
 public:
  StateDir() {
    std::string name = ::testing::TempDir() + "/gpoeo_guard_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path = name;
  }
  ~StateDir() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

// A real card's habit: NVML cannot tell the lock in force.
class CannotTellLocks final : public gpu::testing::CallHook {
 public:
  Status before(Call call, std::string_view) override {
    if (call == Call::kSmClockLock || call == Call::kMemoryClockLock) {
      return make_error(ErrorKind::kNotSupported, "NVML has no getter");
    }
    return {};
  }
  void after(Call, std::string_view, const Error*) override {}
};

// Looks at the disk at the moment of each write to the card.
class JournalWatch final : public gpu::testing::CallHook {
 public:
  explicit JournalWatch(std::filesystem::path file) : file_(std::move(file)) {}
  Status before(Call call, std::string_view) override {
    if (gpu::testing::is_write(call)) present.push_back(std::filesystem::exists(file_));
    return {};
  }
  void after(Call, std::string_view, const Error*) override {}
  std::vector<bool> present;

 private:
  std::filesystem::path file_;
};

class GuardTest : public ::testing::Test {
 protected:
  GuardTest() : bench(twin::testing::quiet_device("a100")) {
    auto opened = Journal::open(state.path);
    if (!opened) ADD_FAILURE() << opened.error().text;
    journal.emplace(std::move(*opened));
    uuid = open()->identity().uuid;
  }
  std::unique_ptr<gpu::Device> open(gpu::Access access = gpu::Access::kControl) {
    return twin::testing::expect_ok(twin::open_device(bench.twin, 0, access));
  }
  // What the card says of its own SM lock.
  std::optional<gpu::ClockRange> lock() {
    auto device = open();
    return device->controls()->sm_clock_lock().value();
  }
  std::filesystem::path file() const { return state.path / (uuid + ".json"); }
  Guard acquire(gpu::Device& device) {
    auto guard = Guard::acquire(device, *journal, {.library = "lib.so", .twin = "seg"});
    if (!guard) ADD_FAILURE() << guard.error().text;
    return std::move(guard).value();
  }
  void write_text(const std::string& text) {
    std::ofstream(file()) << text;
    ::chmod(file().c_str(), 0600);
  }

  StateDir state;
  twin::testing::Bench bench;
  std::optional<Journal> journal;
  std::string uuid;
};

TEST_F(GuardTest, JournalIsOnDiskBeforeTheFirstWriteAndGoneAfterTheRestore) {
  JournalWatch watch(file());
  gpu::testing::DecoratedDevice device(open(), watch);
  Guard guard = acquire(device);
  EXPECT_FALSE(std::filesystem::exists(file())) << "nothing touched yet";
  ASSERT_TRUE(guard.lock_sm_clocks(kLow));
  EXPECT_EQ(lock(), kLow);
  for (const auto& outcome : guard.restore()) EXPECT_TRUE(outcome.status);
  EXPECT_THAT(watch.present, ElementsAre(true, true));
  EXPECT_FALSE(std::filesystem::exists(file()));
  EXPECT_EQ(lock(), std::nullopt);
  EXPECT_EQ(guard.writes(), 2U);
  EXPECT_FALSE(guard.touched());
  EXPECT_THAT(guard.restore(), IsEmpty()) << "nothing left to give back";
}

TEST_F(GuardTest, NothingIsWrittenWhereTheJournalCannotBe) {
  gpu::testing::CallLog log;
  gpu::testing::RecordingDevice device(open(), log);
  Guard guard = acquire(device);
  std::filesystem::remove_all(state.path);
  const Status refused = guard.lock_sm_clocks(kLow);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("journal"));
  EXPECT_THAT(log.writes(), IsEmpty());
  EXPECT_FALSE(guard.touched());
}

TEST_F(GuardTest, DestructionRestores) {
  auto device = open();
  std::optional<Guard> kept;
  {
    Guard guard = acquire(*device);
    ASSERT_TRUE(guard.lock_sm_clocks(kLow));
    kept.emplace(std::move(guard));
  }
  EXPECT_EQ(lock(), kLow) << "the end of a guard that was moved from restores nothing";
  kept.reset();
  EXPECT_EQ(lock(), std::nullopt);
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(GuardTest, APreviousLockComesBack) {
  auto device = open();
  ASSERT_TRUE(device->controls()->lock_sm_clocks(kLower));
  Guard guard = acquire(*device);
  ASSERT_TRUE(guard.lock_sm_clocks(kLow));
  ASSERT_TRUE(guard.lock_sm_clocks({kLow.min, Hertz(1005e6)})) << "and not our own first one";
  const auto outcomes = guard.restore();
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].restored_to, "210..900 MHz");
  EXPECT_EQ(lock(), kLower);
}

TEST_F(GuardTest, AnUnknownPreviousLockGivesTheDriversDefault) {
  CannotTellLocks real;
  gpu::testing::DecoratedDevice device(open(), real);
  Guard guard = acquire(device);
  ASSERT_TRUE(guard.lock_sm_clocks(kLow));
  EXPECT_FALSE(guard.saved().sm_clocks->known);
  EXPECT_EQ(guard.restore()[0].restored_to, "driver default");
  EXPECT_EQ(lock(), std::nullopt);
}

TEST_F(GuardTest, ALockThatCannotBeReadIsLeftAlone) {
  gpu::testing::FaultPlan faults;
  gpu::testing::FaultyDevice device(open(), faults);
  Guard guard = acquire(device);
  faults.fail(Call::kSmClockLock, {ErrorKind::kIo, "driver error"});
  EXPECT_FALSE(guard.lock_sm_clocks(kLow));
  EXPECT_EQ(lock(), std::nullopt);
  EXPECT_FALSE(guard.touched());
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(GuardTest, ARefusedFirstWriteLeavesNoJournal) {
  for (const ErrorKind kind :
       {ErrorKind::kNoPermission, ErrorKind::kNotSupported, ErrorKind::kInvalid}) {
    gpu::testing::FaultPlan faults;
    gpu::testing::FaultyDevice device(open(), faults);
    Guard guard = acquire(device);
    faults.fail(Call::kLockSmClocks, {kind, "no"});
    EXPECT_FALSE(guard.lock_sm_clocks(kLow));
    EXPECT_FALSE(guard.touched());
    EXPECT_FALSE(std::filesystem::exists(file()));
  }
}

TEST_F(GuardTest, AWriteThatMayHaveHappenedStaysInTheJournal) {
  gpu::testing::FaultPlan faults;
  gpu::testing::FaultyDevice device(open(), faults);
  Guard guard = acquire(device);
  faults.fail(Call::kLockSmClocks, {ErrorKind::kTimeout, "no answer"}, 1);
  EXPECT_FALSE(guard.lock_sm_clocks(kLow));
  EXPECT_TRUE(guard.touched());
  EXPECT_TRUE(std::filesystem::exists(file()));
  EXPECT_TRUE(guard.restore()[0].status);
  EXPECT_FALSE(std::filesystem::exists(file()));
}

// After a good first write, a refused second one must not make us forget the first.
TEST_F(GuardTest, ARefusedSecondWriteKeepsTheFirstOnesJournal) {
  gpu::testing::FaultPlan faults;
  gpu::testing::FaultyDevice device(open(), faults);
  Guard guard = acquire(device);
  ASSERT_TRUE(guard.lock_sm_clocks(kLow));
  faults.fail(Call::kLockSmClocks, {ErrorKind::kNoPermission, "rights were taken away"}, 1);
  EXPECT_FALSE(guard.lock_sm_clocks(kLower));
  EXPECT_TRUE(guard.touched());
  EXPECT_TRUE(guard.restore()[0].status);
  EXPECT_EQ(lock(), std::nullopt);
}

TEST_F(GuardTest, EachControlIsRestoredOnItsOwnInOrderAndFailuresAreTriedAgain) {
  gpu::testing::FaultPlan faults;
  gpu::testing::CallLog log;
  gpu::testing::FaultyDevice device(std::make_unique<gpu::testing::RecordingDevice>(open(), log),
                                    faults);
  const double standard_w = device.capabilities().power_limits->standard.value();
  const Hertz memory = device.capabilities().clocks.front().memory;
  Guard guard = acquire(device);
  ASSERT_TRUE(guard.lock_sm_clocks(kLow));
  ASSERT_TRUE(guard.lock_memory_clocks({memory, memory}));
  ASSERT_TRUE(guard.set_power_limit(Watts(standard_w - 100)));
  log.clear();
  faults.fail(Call::kResetMemoryClocks, {ErrorKind::kIo, "failed"}, 1);
  const auto outcomes = guard.restore();
  ASSERT_EQ(outcomes.size(), 3U);
  EXPECT_EQ(outcomes[0].control, gpu::Control::kPowerLimit);
  EXPECT_EQ(outcomes[1].control, gpu::Control::kMemoryClocks);
  EXPECT_EQ(outcomes[2].control, gpu::Control::kSmClocks);
  EXPECT_TRUE(outcomes[0].status);
  EXPECT_FALSE(outcomes[1].status);
  EXPECT_TRUE(outcomes[2].status) << "one failure stops no other";
  EXPECT_EQ(log.writes().size(), 2U);
  EXPECT_EQ(device.power_limit()->value(), standard_w);
  ASSERT_TRUE(std::filesystem::exists(file())) << "memory clocks are still to be given back";
  const auto left = journal->read(uuid);
  ASSERT_TRUE(left && *left);
  EXPECT_TRUE((*left)->memory_clocks);
  EXPECT_FALSE((*left)->sm_clocks);
  const auto again = guard.restore();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_TRUE(again[0].status);
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(GuardTest, ReadOnlyDevicesHaveNoGuard) {
  auto device = open(gpu::Access::kReadOnly);
  const auto guard = Guard::acquire(*device, *journal, {});
  ASSERT_FALSE(guard);
  EXPECT_EQ(guard.error().kind, ErrorKind::kNotSupported);
}

TEST_F(GuardTest, TwoGuardsOnOneGpuIsBusyUntilTheFirstIsGone) {
  auto one = open(), two = open();
  {
    Guard first = acquire(*one);
    const auto second = Guard::acquire(*two, *journal, {});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().kind, ErrorKind::kBusy);
    EXPECT_THAT(second.error().text, HasSubstr(std::to_string(::getpid())));
    EXPECT_THAT(second.error().text, HasSubstr("--dry-run"));
  }
  EXPECT_TRUE(Guard::acquire(*two, *journal, {}));
}

TEST_F(GuardTest, AStaleJournalIsHealedFirst) {
  auto device = open();
  ASSERT_TRUE(device->controls()->lock_sm_clocks(kLow));  // by a gpoeo that was killed
  JournalEntry entry{.uuid = uuid,
                     .gpu_name = "A100",
                     .driver = {},
                     .owner_pid = 999999,
                     .sm_clocks = SavedLock{.known = true, .range = kLower},
                     .memory_clocks = {},
                     .power_limit = {}};
  ASSERT_TRUE(journal->write(entry));
  Guard guard = acquire(*device);
  ASSERT_EQ(guard.healed().size(), 1U);
  EXPECT_TRUE(guard.healed()[0].status);
  EXPECT_EQ(lock(), kLower);
  EXPECT_FALSE(std::filesystem::exists(file()));
  EXPECT_FALSE(guard.touched());
}

TEST_F(GuardTest, AStaleJournalThatCannotBeHealedStaysAndIsTold) {
  gpu::testing::FaultPlan faults;
  gpu::testing::FaultyDevice device(open(), faults);
  ASSERT_TRUE(journal->write({.uuid = uuid,
                              .gpu_name = "A100",
                              .driver = {},
                              .owner_pid = 4242,
                              .sm_clocks = SavedLock{},
                              .memory_clocks = {},
                              .power_limit = {}}));
  faults.fail(Call::kResetSmClocks, {ErrorKind::kIo, "failed"});
  const auto guard = Guard::acquire(device, *journal, {});
  ASSERT_FALSE(guard);
  EXPECT_THAT(guard.error().text, HasSubstr("gpoeo reset"));
  EXPECT_THAT(guard.error().text, HasSubstr("4242"));
  EXPECT_TRUE(std::filesystem::exists(file()));
}

TEST_F(GuardTest, JournalComesBackAsItWasWritten) {
  const JournalEntry entry{.uuid = uuid,
                           .gpu_name = "A100 \"quoted\" \xff",
                           .driver = {.library = "/usr/lib/libnvidia-ml.so.1", .twin = "seg"},
                           .owner_pid = 77,
                           .sm_clocks = SavedLock{.known = true, .range = kLow},
                           .memory_clocks = SavedLock{.known = true, .range = {}},
                           .power_limit = Watts(312.5)};
  ASSERT_TRUE(journal->write(entry));
  const auto read = journal->read(uuid);
  ASSERT_TRUE(read && *read);
  EXPECT_EQ((*read)->uuid, uuid);
  EXPECT_EQ((*read)->driver.library, entry.driver.library);
  EXPECT_EQ((*read)->driver.twin, "seg");
  EXPECT_EQ((*read)->owner_pid, 77);
  EXPECT_EQ((*read)->sm_clocks->range, kLow);
  EXPECT_TRUE((*read)->memory_clocks->known);
  EXPECT_FALSE((*read)->memory_clocks->range);
  EXPECT_NEAR((*read)->power_limit->value(), 312.5, 1e-3);
  EXPECT_THAT(journal->list(), ElementsAre(uuid));
  struct stat info {};
  ASSERT_EQ(::stat(file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  ASSERT_TRUE(journal->remove(uuid));
  EXPECT_TRUE(journal->remove(uuid)) << "twice is fine";
  EXPECT_FALSE(*journal->read(uuid));
  EXPECT_THAT(journal->list(), IsEmpty());
}

TEST_F(GuardTest, DamagedJournalsAreRefusedWithTheFileAndTheCure) {
  for (const char* text : {"", "{", "[]", "null", "{\"version\":1}", "{\"version\":\"one\"}",
                           "{\"version\":1,\"uuid\":5,\"gpu_name\":\"x\"}"}) {
    write_text(text);
    const auto read = journal->read(uuid);
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.error().text, HasSubstr(file().string())) << text;
    EXPECT_THAT(read.error().text, HasSubstr("nvidia-smi -rgc")) << text;
    auto device = open();
    EXPECT_FALSE(Guard::acquire(*device, *journal, {})) << "and no clock is set over it";
  }
}

// Numbers that no card has must not be written to one, and must not be undefined behaviour.
TEST_F(GuardTest, AbsurdClocksAndLimitsInAJournalAreRefused) {
  const auto with = [&](const std::string& controls) {
    write_text("{\"version\":1,\"uuid\":\"" + uuid +
               "\",\"gpu_name\":\"A100\",\"driver\":{\"library\":\"l\",\"twin\":\"\"},"
               "\"owner_pid\":1,\"controls\":{" +
               controls + "}}");
    return journal->read(uuid);
  };
  EXPECT_TRUE(with("\"sm_clocks\":{\"known\":true,\"range_mhz\":[210,900]}"));
  EXPECT_FALSE(with("\"sm_clocks\":{\"known\":true,\"range_mhz\":[900,210]}"));
  EXPECT_FALSE(with("\"sm_clocks\":{\"known\":true,\"range_mhz\":[-5,900]}"));
  EXPECT_FALSE(with("\"sm_clocks\":{\"known\":true,\"range_mhz\":[1]}"));
  EXPECT_FALSE(with("\"power_limit_mw\":-1"));
  EXPECT_FALSE(with("\"power_limit_mw\":\"400\""));
}

TEST_F(GuardTest, OtherVersionsAndOtherGpusAreRefused) {
  write_text("{\"version\":2}");
  auto read = journal->read(uuid);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().text, HasSubstr("version 2"));
  write_text(
      "{\"version\":1,\"uuid\":\"GPU-other\",\"gpu_name\":\"A100\",\"driver\":{\"library\":"
      "\"l\",\"twin\":\"\"},\"owner_pid\":1,\"controls\":{}}");
  read = journal->read(uuid);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().text, HasSubstr("GPU-other"));
}

TEST_F(GuardTest, AJournalThatOthersMayWriteIsRefused) {
  write_text("{}");
  ::chmod(file().c_str(), 0622);
  const auto read = journal->read(uuid);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::kNoPermission);
  EXPECT_THAT(read.error().text, HasSubstr(file().string()));
  std::filesystem::remove(file());
  std::filesystem::create_symlink("/etc/passwd", file());
  EXPECT_FALSE(journal->read(uuid)) << "a link is not followed";
}

TEST_F(GuardTest, AForeignOwnersJournalIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  write_text("{}");
  ASSERT_EQ(::chown(file().c_str(), 65534, 65534), 0);
  const auto read = journal->read(uuid);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::kNoPermission);
}

TEST_F(GuardTest, AFolderThatOthersMayWriteIsRefused) {
  ::chmod(state.path.c_str(), 0777);
  const auto opened = Journal::open(state.path);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().text, HasSubstr(state.path.string()));
}

TEST_F(GuardTest, NoUuidLeavesTheFolder) {
  for (const char* bad : {"../evil", "a/b", "", ".", ".."}) {
    EXPECT_FALSE(journal->read(bad)) << bad;
    EXPECT_FALSE(journal->remove(bad)) << bad;
    JournalEntry entry;
    entry.uuid = bad;
    EXPECT_FALSE(journal->write(entry)) << bad;
    EXPECT_FALSE(WriterLock::acquire(state.path, bad)) << bad;
  }
}

TEST_F(GuardTest, PowerLimitComesBackAsItWasSetAndNotAsItBinds) {
  auto device = open();
  ASSERT_TRUE(device->controls()->set_power_limit(Watts(300)));
  Guard guard = acquire(*device);
  ASSERT_TRUE(guard.set_power_limit(Watts(200)));
  EXPECT_EQ(device->power_limit()->value(), 200);
  EXPECT_EQ(guard.restore()[0].restored_to, "300 W");
  EXPECT_EQ(device->power_limit()->value(), 300);
}

}  // namespace
}  // namespace gpoeo::control
