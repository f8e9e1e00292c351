// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <thread>

#include "gpu/testing/faulty_device.h"
#include "gpu/testing/recording_device.h"

namespace gpoeo::gpu::testing {
namespace {

using ::testing::ElementsAre;

// Answers each reading with 1 and accepts each write.
class PlainDevice final : public Device, private Controls {
 public:
  explicit PlainDevice(Access access) : access_(access) {}
  const DeviceIdentity& identity() const override { return identity_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  Result<std::vector<PowerSample>> power_samples_since(Instant) override {
    return std::vector<PowerSample>();
  }
  Result<Watts> power_instant() override { return Watts(1); }
  Result<Watts> power_average() override { return Watts(1); }
  Result<Joules> energy_counter() override { return Joules(1); }
  Result<Hertz> sm_clock() override { return Hertz(1); }
  Result<Hertz> memory_clock() override { return Hertz(1); }
  Result<Utilization> utilization() override { return Utilization{}; }
  Result<Celsius> temperature() override { return Celsius(1); }
  Result<EventReasons> event_reasons() override { return EventReasons{}; }
  Result<Counters> counters() override { return Counters{}; }
  Result<std::vector<ComputeProcess>> compute_processes() override {
    return std::vector<ComputeProcess>();
  }
  Result<Watts> power_limit() override { return Watts(1); }
  Controls* controls() override { return access_ == Access::kControl ? this : nullptr; }

 private:
  Status lock_sm_clocks(ClockRange) override { return {}; }
  Status reset_sm_clocks() override { return {}; }
  Status lock_memory_clocks(ClockRange) override { return {}; }
  Status reset_memory_clocks() override { return {}; }
  Status set_power_limit(Watts) override { return {}; }
  Status reset_power_limit() override { return {}; }
  Result<std::optional<ClockRange>> sm_clock_lock() override { return std::optional<ClockRange>(); }
  Result<std::optional<ClockRange>> memory_clock_lock() override {
    return std::optional<ClockRange>();
  }
  Access access_;
  DeviceIdentity identity_;
  Capabilities capabilities_;
};

std::unique_ptr<Device> plain(Access access = Access::kControl) {
  return std::make_unique<PlainDevice>(access);
}

const Error kNo{ErrorKind::kNoPermission, "no"};

TEST(FaultyDevice, PassesEverythingOnWithoutAFault) {
  FaultPlan faults;
  FaultyDevice device(plain(), faults);
  EXPECT_TRUE(device.power_instant());
  EXPECT_TRUE(device.controls()->reset_sm_clocks());
  EXPECT_EQ(faults.calls(), 2);
}

TEST(FaultyDevice, FailsANamedCallEachTimeOrOnce) {
  FaultPlan faults;
  FaultyDevice device(plain(), faults);
  faults.fail(Call::kPowerInstant, kNo);
  EXPECT_FALSE(device.power_instant());
  EXPECT_FALSE(device.power_instant());
  EXPECT_TRUE(device.power_average());
  faults.heal();
  faults.fail(Call::kPowerInstant, kNo, 2);
  EXPECT_TRUE(device.power_instant());
  EXPECT_EQ(device.power_instant().error().kind, ErrorKind::kNoPermission);
  EXPECT_TRUE(device.power_instant());
}

TEST(FaultyDevice, FailsTheNthCallOrTheNthWrite) {
  FaultPlan faults;
  FaultyDevice device(plain(), faults);
  faults.fail_nth(2, kNo);
  EXPECT_TRUE(device.sm_clock());
  EXPECT_FALSE(device.temperature());
  faults.fail_nth_write(2, kNo);
  EXPECT_TRUE(device.controls()->lock_sm_clocks({megahertz(1), megahertz(2)}));
  EXPECT_TRUE(device.sm_clock());
  EXPECT_FALSE(device.controls()->set_power_limit(Watts(100)));
  EXPECT_TRUE(device.controls()->reset_sm_clocks());
}

TEST(FaultyDevice, LosesTheGpuFromACallOnUntilHealed) {
  FaultPlan faults;
  FaultyDevice device(plain(), faults);
  faults.lose_from(2);
  EXPECT_TRUE(device.sm_clock());
  EXPECT_EQ(device.sm_clock().error().kind, ErrorKind::kDeviceLost);
  EXPECT_EQ(device.controls()->reset_sm_clocks().error().kind, ErrorKind::kDeviceLost);
  faults.heal();
  EXPECT_TRUE(device.sm_clock());
}

TEST(FaultyDevice, HangsUntilReleased) {
  FaultPlan faults;
  FaultyDevice device(plain(), faults);
  faults.hang(Call::kEnergyCounter);
  EXPECT_TRUE(device.sm_clock());
  std::thread caller([&] { EXPECT_TRUE(device.energy_counter()); });
  while (faults.hanging() == 0) std::this_thread::yield();
  faults.release();
  caller.join();
  EXPECT_EQ(faults.hanging(), 0);
}

TEST(RecordingDevice, WritesCallsDownInOrderWithArgumentsAndFailures) {
  FaultPlan faults;
  CallLog log;
  RecordingDevice device(std::make_unique<FaultyDevice>(plain(), faults), log);
  faults.fail(Call::kResetSmClocks, kNo);
  (void)device.power_instant();
  (void)device.controls()->lock_sm_clocks({megahertz(210), megahertz(1200)});
  (void)device.controls()->reset_sm_clocks();
  EXPECT_THAT(log.lines(), ElementsAre("power_instant", "lock_sm_clocks 210 1200",
                                       "reset_sm_clocks -> no permission"));
  EXPECT_THAT(log.writes(),
              ElementsAre("lock_sm_clocks 210 1200", "reset_sm_clocks -> no permission"));
}

TEST(Decorators, ReadOnlyDeviceStaysReadOnly) {
  FaultPlan faults;
  FaultyDevice device(plain(Access::kReadOnly), faults);
  EXPECT_EQ(device.controls(), nullptr);
}

}  // namespace
}  // namespace gpoeo::gpu::testing
