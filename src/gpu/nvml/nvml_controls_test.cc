// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml/nvml_controls.h"

#include <gmock/gmock.h>

#include "gpu/nvml/nvml_fixture.h"

namespace gpoeo::nvml {
namespace {

using gpu::Access;
using gpu::ClockRange;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using NvmlControlsTest = NvmlFixture;

TEST_F(NvmlControlsTest, ReadOnlySessionNeverEvenLooksASetterUp) {
  fake_->setters_abort = true;
  const auto device = open(Access::kReadOnly);
  EXPECT_EQ(device->controls(), nullptr);
  (void)device->power_samples_since(Instant{});
  (void)device->power_instant();
  (void)device->power_average();
  (void)device->energy_counter();
  (void)device->sm_clock();
  (void)device->memory_clock();
  (void)device->utilization();
  (void)device->temperature();
  (void)device->event_reasons();
  (void)device->counters();
  (void)device->compute_processes();
  (void)device->power_limit();
  EXPECT_EQ(fake_->setter_lookups, 0);
  EXPECT_THAT(fake_->setter_calls, IsEmpty());
}

TEST_F(NvmlControlsTest, OpeningForControlLooksUpButCallsNothing) {
  const auto device = open(Access::kControl);
  EXPECT_NE(device->controls(), nullptr);
  EXPECT_GT(fake_->setter_lookups, 0);  // or the test above proves nothing
  EXPECT_THAT(fake_->setter_calls, IsEmpty());
  EXPECT_EQ(device->capabilities()[gpu::Control::kSmClocks], gpu::Support::kUnknown);
}

TEST_F(NvmlControlsTest, WritesMegahertzAndMilliwatts) {
  const auto device = open(Access::kControl);
  gpu::Controls& controls = *device->controls();
  EXPECT_TRUE(controls.lock_sm_clocks({megahertz(345), megahertz(1200)}));
  EXPECT_TRUE(controls.lock_memory_clocks({megahertz(2201), megahertz(2201)}));
  EXPECT_TRUE(controls.set_power_limit(Watts(450.5)));
  EXPECT_TRUE(controls.reset_power_limit());
  EXPECT_TRUE(controls.reset_memory_clocks());
  EXPECT_TRUE(controls.reset_sm_clocks());
  EXPECT_THAT(fake_->setter_calls,
              ElementsAre("nvmlDeviceSetGpuLockedClocks 345 1200",
                          "nvmlDeviceSetMemoryLockedClocks 2201 2201",
                          "nvmlDeviceSetPowerManagementLimit 450500",
                          "nvmlDeviceSetPowerManagementLimit 700000",
                          "nvmlDeviceResetMemoryLockedClocks", "nvmlDeviceResetGpuLockedClocks"));
}

TEST_F(NvmlControlsTest, RefusesWhatTheCardDoesNotHaveAndNamesTheNearest) {
  const auto device = open(Access::kControl);
  gpu::Controls& controls = *device->controls();
  const auto between = controls.lock_sm_clocks({megahertz(345), megahertz(1207)});
  EXPECT_EQ(between.error().kind, ErrorKind::kInvalid);
  EXPECT_THAT(between.error().text, HasSubstr("the nearest are 1200 and 1215 MHz"));
  EXPECT_THAT(controls.lock_sm_clocks({megahertz(345), megahertz(2000)}).error().text,
              HasSubstr("the highest is 1980 MHz"));
  EXPECT_THAT(controls.lock_sm_clocks({megahertz(100), megahertz(1200)}).error().text,
              HasSubstr("the lowest is 345 MHz"));
  EXPECT_THAT(controls.lock_sm_clocks({megahertz(1200), megahertz(345)}).error().text,
              HasSubstr("upside down"));
  EXPECT_THAT(controls.set_power_limit(Watts(85)).error().text, HasSubstr("outside 200 to 700 W"));
  EXPECT_THAT(fake_->setter_calls, IsEmpty());
}

TEST_F(NvmlControlsTest, MissingRightsNameDeviceCallVendorTextAndCure) {
  const auto device = open(Access::kControl);
  fake_->answers["nvmlDeviceSetGpuLockedClocks"] = nvml_abi::kNoPermission;
  const auto status = device->controls()->lock_sm_clocks({megahertz(345), megahertz(1200)});
  EXPECT_EQ(status.error().kind, ErrorKind::kNoPermission);
  for (const char* part : {"GPU 0 (Fake GPU)", "nvmlDeviceSetGpuLockedClocks",
                           "Insufficient Permissions", "run as root"}) {
    EXPECT_THAT(status.error().text, HasSubstr(part));
  }
}

TEST_F(NvmlControlsTest, MigParentIsRefusedWithTheReason) {
  fake_->mig = 1;
  const auto device = open(Access::kControl);
  EXPECT_EQ(device->capabilities()[gpu::Control::kSmClocks], gpu::Support::kNo);
  const auto status = device->controls()->lock_sm_clocks({megahertz(345), megahertz(1200)});
  EXPECT_EQ(status.error().kind, ErrorKind::kNotSupported);
  EXPECT_THAT(status.error().text, HasSubstr("MIG is on"));
  EXPECT_FALSE(device->controls()->reset_sm_clocks());
  EXPECT_THAT(fake_->setter_calls, IsEmpty());
}

TEST_F(NvmlControlsTest, VendorLibraryCannotTellTheLock) {
  const auto device = open(Access::kControl);
  EXPECT_EQ(device->controls()->sm_clock_lock().error().kind, ErrorKind::kNotSupported);
  EXPECT_EQ(device->controls()->memory_clock_lock().error().kind, ErrorKind::kNotSupported);
}

}  // namespace
}  // namespace gpoeo::nvml
