// SPDX-License-Identifier: Apache-2.0
// Clocks of one GPU, set and given back while calls fail.
#include "control/gpu_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "gpu/testing/faulty_device.h"
#include "gpu/testing/recording_device.h"
#include "twin/testing/fixtures.h"
#include "twin/twin_device.h"

namespace gpoeo::control {
namespace {

using gpu::testing::Call;
using twin::testing::expect_ok;

const policy::ClockSetting kBoth{.sm = megahertz(1200), .memory = megahertz(2201)};

class GpuChannelTest : public ::testing::Test {
 protected:
  GpuChannelTest() {
    std::string name = ::testing::TempDir() + "/gpoeo_channel_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    journal_ = std::make_unique<Journal>(expect_ok(Journal::open(folder_)));
    start();
  }
  ~GpuChannelTest() override {
    faults_.heal();
    channel_.reset();
    std::filesystem::remove_all(folder_);
  }
  std::unique_ptr<gpu::Device> card() {
    return expect_ok(twin::open_device(bench_.twin, 0, gpu::Access::kControl));
  }
  void start() {
    channel_.reset();
    device_ = std::make_unique<gpu::testing::FaultyDevice>(
        std::make_unique<gpu::testing::RecordingDevice>(card(), log_), faults_);
    channel_ = std::make_unique<GpuChannel>(
        GpuInput{.device = device_.get(),
                 .guard = expect_ok(Guard::acquire(*device_, *journal_, {})),
                 .trace = {}},
        bench_.clock);
  }
  std::optional<gpu::ClockRange> sm_lock() { return card()->controls()->sm_clock_lock().value(); }
  std::optional<gpu::ClockRange> memory_lock() {
    return card()->controls()->memory_clock_lock().value();
  }

  twin::testing::Bench bench_{twin::testing::device("h200")};
  gpu::testing::CallLog log_;
  gpu::testing::FaultPlan faults_;
  std::filesystem::path folder_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<gpu::Device> device_;
  std::unique_ptr<GpuChannel> channel_;
};

// One of two controls could not be given back. What was given back must not pass for set.
TEST_F(GpuChannelTest, AfterARestoreInPartWhatIsWantedIsWrittenAgain) {
  for (const Call stuck : {Call::kResetMemoryClocks, Call::kResetSmClocks}) {
    start();
    ASSERT_TRUE(channel_->set_clocks(kBoth));
    ASSERT_TRUE(sm_lock() && memory_lock());
    faults_.fail(stuck, {ErrorKind::kIo, "stuck"});
    EXPECT_FALSE(channel_->restore());
    EXPECT_TRUE(channel_->touched());
    EXPECT_TRUE(channel_->section().restore_failed);
    EXPECT_NE(sm_lock().has_value(), memory_lock().has_value()) << "one is back";
    faults_.heal();
    ASSERT_TRUE(channel_->set_clocks(kBoth));
    ASSERT_TRUE(sm_lock() && memory_lock());
    EXPECT_EQ(sm_lock()->max, megahertz(1200));
    EXPECT_EQ(memory_lock()->max, megahertz(2201));
    EXPECT_TRUE(channel_->restore());
    EXPECT_FALSE(sm_lock() || memory_lock());
    EXPECT_FALSE(channel_->section().restore_failed);
    EXPECT_TRUE(journal_->list().empty());
  }
}

// A write that failed may have done anything: the same setting once more is no repetition.
TEST_F(GpuChannelTest, AfterAWriteThatFailedTheSettingBeforeIsWrittenAgain) {
  ASSERT_TRUE(channel_->set_clocks({.sm = megahertz(1200)}));
  faults_.fail(Call::kLockSmClocks, {ErrorKind::kIo, "stuck"}, 1);
  EXPECT_FALSE(channel_->set_clocks({.sm = megahertz(1500)}));
  const auto writes = log_.writes().size();
  ASSERT_TRUE(channel_->set_clocks({.sm = megahertz(1200)}));
  EXPECT_GT(log_.writes().size(), writes);
  const auto again = log_.writes().size();
  ASSERT_TRUE(channel_->set_clocks({.sm = megahertz(1200)}));
  EXPECT_EQ(log_.writes().size(), again) << "now it is one";
}

// A lock that others had is what comes back, also when that failed at first and clocks were set
// again in between.
TEST_F(GpuChannelTest, WhatWasFoundIsStillKnownAfterARestoreThatFailed) {
  const gpu::ClockRange found{megahertz(345), megahertz(1800)};
  ASSERT_TRUE(card()->controls()->lock_sm_clocks(found));
  ASSERT_TRUE(channel_->set_clocks(kBoth));
  faults_.fail(Call::kLockSmClocks, {ErrorKind::kIo, "stuck"});
  EXPECT_FALSE(channel_->restore());
  EXPECT_EQ(sm_lock()->max, megahertz(1200)) << "still ours";
  EXPECT_FALSE(memory_lock()) << "the other one is back";
  faults_.heal();
  ASSERT_TRUE(channel_->set_clocks({.sm = megahertz(1500)}));
  EXPECT_EQ(channel_->section().clocks_found, "345..1800 MHz");
  EXPECT_TRUE(channel_->restore());
  EXPECT_EQ(sm_lock(), found);
  EXPECT_EQ(channel_->section().clocks_restored, "345..1800 MHz");
}

// The memory lock alone is taken off on the way to another setting, and that fails.
TEST_F(GpuChannelTest, AControlThatIsNotWantedAnyMoreIsTriedAgain) {
  ASSERT_TRUE(channel_->set_clocks(kBoth));
  faults_.fail(Call::kResetMemoryClocks, {ErrorKind::kIo, "stuck"}, 1);
  EXPECT_FALSE(channel_->set_clocks({.sm = megahertz(1200)}));
  ASSERT_TRUE(memory_lock());
  ASSERT_TRUE(channel_->set_clocks({.sm = megahertz(1200)}));
  EXPECT_FALSE(memory_lock());
  EXPECT_TRUE(sm_lock());
}

TEST_F(GpuChannelTest, ALostGpuThatComesBackIsGivenBackWhatWasFound) {
  ASSERT_TRUE(channel_->set_clocks(kBoth));
  faults_.lose_from();
  EXPECT_FALSE(channel_->restore());
  EXPECT_TRUE(channel_->section().restore_failed);
  faults_.heal();
  EXPECT_TRUE(channel_->restore());
  EXPECT_FALSE(sm_lock() || memory_lock());
  EXPECT_FALSE(channel_->section().restore_failed);
}

}  // namespace
}  // namespace gpoeo::control
