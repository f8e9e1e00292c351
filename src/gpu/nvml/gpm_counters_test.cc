// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml/gpm_counters.h"

#include <limits>

#include "gpu/nvml/nvml_fixture.h"

namespace gpoeo::nvml {
namespace {

using namespace std::chrono_literals;

class GpmTest : public NvmlFixture {
 protected:
  std::unique_ptr<gpu::Device> open_virtual() {
    auto driver = open_nvml({.library = library_}, time_);
    EXPECT_TRUE(driver);
    return (*driver)->open(0, gpu::Access::kReadOnly).value();
  }
  VirtualClock time_;
};

TEST_F(GpmTest, ConvertsPercentAndMebibytes) {
  fake_->gpm = {
      {nvml_abi::kGpmSm, 80.0}, {nvml_abi::kGpmDramBandwidth, 40.0}, {nvml_abi::kGpmPcieTx, 2.0}};
  const auto device = open_virtual();
  EXPECT_EQ(device->counters().error().kind, ErrorKind::kBusy);  // only opens the window
  time_.advance(250ms);
  const auto counters = device->counters();
  ASSERT_TRUE(counters) << counters.error().text;
  EXPECT_DOUBLE_EQ(counters->window.value(), 0.25);
  EXPECT_DOUBLE_EQ(*counters->sm_active, 0.8);
  EXPECT_DOUBLE_EQ(*counters->dram_active, 0.4);
  EXPECT_DOUBLE_EQ(*counters->pcie_tx_bytes_per_s, 2.0 * 1024 * 1024);
  EXPECT_FALSE(counters->fp64_active);
}

TEST_F(GpmTest, WindowOfNoWholePeriodIsBusyAndGoesOn) {
  fake_->gpm = {{nvml_abi::kGpmSm, 80.0}};
  const auto device = open_virtual();
  EXPECT_FALSE(device->counters());
  time_.advance(60ms);
  EXPECT_EQ(device->counters().error().kind, ErrorKind::kBusy);
  time_.advance(60ms);
  const auto counters = device->counters();
  ASSERT_TRUE(counters);
  EXPECT_DOUBLE_EQ(counters->window.value(), 0.12);
}

TEST_F(GpmTest, NaNIsAbsentAndAStepThatHasNotMovedIsBusy) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  fake_->gpm = {{nvml_abi::kGpmSm, nan}, {nvml_abi::kGpmDramBandwidth, 0.0}};
  const auto device = open_virtual();
  EXPECT_FALSE(device->counters());
  time_.advance(110ms);
  EXPECT_EQ(device->counters().error().kind, ErrorKind::kBusy);
  fake_->gpm[nvml_abi::kGpmDramBandwidth] = 30.0;
  time_.advance(50ms);
  const auto counters = device->counters();
  ASSERT_TRUE(counters);
  EXPECT_FALSE(counters->sm_active);
  EXPECT_DOUBLE_EQ(*counters->dram_active, 0.3);
  EXPECT_DOUBLE_EQ(counters->window.value(), 0.16);
}

TEST_F(GpmTest, AllZeroOverTwoPeriodsIsAnIdleGpu) {
  fake_->gpm = {{nvml_abi::kGpmSm, 0.0}};
  const auto device = open_virtual();
  EXPECT_FALSE(device->counters());
  time_.advance(200ms);
  EXPECT_DOUBLE_EQ(*device->counters()->sm_active, 0.0);
}

TEST_F(GpmTest, CardWithoutGpmIsUnsupported) {
  fake_->gpm_supported = false;
  const auto device = open_virtual();
  EXPECT_EQ(device->capabilities()[gpu::Reading::kCounters], gpu::Support::kNo);
  EXPECT_EQ(device->counters().error().kind, ErrorKind::kNotSupported);
}

}  // namespace
}  // namespace gpoeo::nvml
