// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml/nvml_device.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "gpu/nvml/nvml_fixture.h"

namespace gpoeo::nvml {
namespace {

using gpu::Reading;
using gpu::Support;
using ::testing::HasSubstr;

class NvmlDeviceTest : public NvmlFixture {
 protected:
  void add_sample(unsigned long long time_us, unsigned milliwatts) {
    nvml_abi::Sample sample{};
    sample.time_us = time_us;
    sample.value.as_unsigned = milliwatts;
    fake_->samples.push_back(sample);
  }
  // A stamp `ms` before now, as the driver would write it.
  unsigned long long stamp_ago(int ms) {
    return static_cast<unsigned long long>(to_unix_ns(clock_.now()) / 1000 - ms * 1000);
  }
};

TEST_F(NvmlDeviceTest, TellsWhoItIsAndThatItIsReal) {
  const auto device = open();
  EXPECT_EQ(device->identity().name, "Fake GPU");
  EXPECT_EQ(device->identity().uuid, "GPU-0000");
  EXPECT_EQ(device->identity().pci_bus_id, "00000000:65:00.0");
  EXPECT_FALSE(device->identity().simulated);
}

TEST_F(NvmlDeviceTest, ConvertsEachReadingToSi) {
  const auto device = open();
  EXPECT_DOUBLE_EQ(device->power_instant()->value(), 301.0);
  EXPECT_DOUBLE_EQ(device->power_average()->value(), 302.0);
  EXPECT_DOUBLE_EQ(device->energy_counter()->value(), 5000.0);
  EXPECT_DOUBLE_EQ(device->sm_clock()->value(), 1980e6);
  EXPECT_DOUBLE_EQ(device->memory_clock()->value(), 3201e6);
  EXPECT_DOUBLE_EQ(device->utilization()->gpu, 0.87);
  EXPECT_DOUBLE_EQ(device->utilization()->memory, 0.43);
  EXPECT_DOUBLE_EQ(device->temperature()->value(), 61);
  EXPECT_TRUE(device->event_reasons()->has(gpu::EventReasons::kSwPowerCap));
  EXPECT_DOUBLE_EQ(device->power_limit()->value(), 650.0);
}

TEST_F(NvmlDeviceTest, ListsSupportedClocksPerMemoryClockAscending) {
  const auto device = open();
  const auto& clocks = device->capabilities().clocks;
  ASSERT_EQ(clocks.size(), 2u);
  EXPECT_EQ(clocks[0].memory, megahertz(3201));
  EXPECT_EQ(clocks[0].sm.front(), megahertz(345));
  EXPECT_EQ(clocks[0].sm.back(), megahertz(1980));
  EXPECT_EQ(clocks[1].memory, megahertz(2201));
  EXPECT_EQ(clocks[1].sm.back(), megahertz(1500));
  ASSERT_TRUE(device->capabilities().power_limits);
  EXPECT_EQ(device->capabilities().power_limits->min, Watts(200));
}

TEST_F(NvmlDeviceTest, ReadsOnlySamplesNewerThanTheLastOne) {
  const auto device = open();
  const unsigned long long first = stamp_ago(100);
  for (int i = 0; i < 5; ++i) add_sample(first + 20'000 * i, 100'000 + 1000 * i);
  auto samples = device->power_samples_since(Instant{});
  ASSERT_TRUE(samples) << samples.error().text;
  ASSERT_EQ(samples->size(), 5u);
  EXPECT_DOUBLE_EQ(samples->back().power.value(), 104.0);
  const Instant last = samples->back().time;
  samples = device->power_samples_since(last);
  ASSERT_TRUE(samples);
  EXPECT_TRUE(samples->empty());  // NVML says "not found" when there is nothing newer
  add_sample(first + 100'000, 110'000);
  samples = device->power_samples_since(last);
  ASSERT_EQ(samples->size(), 1u);
  EXPECT_EQ(samples->front().time - last, std::chrono::milliseconds(20));
}

TEST_F(NvmlDeviceTest, GrowsItsBufferToTheDriversAnswer) {
  const auto device = open();
  const unsigned long long first = stamp_ago(100'000);
  for (int i = 0; i < 3000; ++i) add_sample(first + 20'000ULL * i, 100'000);
  EXPECT_EQ(device->power_samples_since(Instant{})->size(), 3000u);
}

TEST_F(NvmlDeviceTest, BrokenSampleIsAGapAndOnlyBrokenOnesAnError) {
  const auto device = open();
  add_sample(stamp_ago(40), 0xFFFFFFFF);
  EXPECT_THAT(device->power_samples_since(Instant{}).error().text, HasSubstr("which no GPU has"));
  add_sample(stamp_ago(20), 100'000);
  const auto samples = device->power_samples_since(Instant{});
  ASSERT_TRUE(samples);
  ASSERT_EQ(samples->size(), 1u);
  EXPECT_DOUBLE_EQ(samples->front().power.value(), 100.0);
}

TEST_F(NvmlDeviceTest, SentinelsAreErrorsNotValues) {
  const auto device = open();
  fake_->sm_mhz = fake_->memory_mhz = fake_->celsius = fake_->usage_mw = 0xFFFFFFFF;
  fake_->enforced_limit_mw = 0xFFFFFFFF;
  fake_->fields_mw[nvml_abi::kFieldPowerInstant] = 0xFFFFFFFF;
  fake_->utilization.gpu = 0xFFFFFFFF;
  fake_->energy_mj = ~0ULL;
  for (const auto& kind : {device->sm_clock().error().kind, device->memory_clock().error().kind,
                           device->temperature().error().kind, device->power_instant().error().kind,
                           device->power_limit().error().kind, device->utilization().error().kind,
                           device->energy_counter().error().kind}) {
    EXPECT_EQ(kind, ErrorKind::kIo);
  }
}

TEST_F(NvmlDeviceTest, EnergyStepsBackOrBeyondReasonAreRefusedOnceThenItGoesOn) {
  const auto device = open();
  ASSERT_TRUE(device->energy_counter());
  fake_->energy_mj = 1000;
  EXPECT_THAT(device->energy_counter().error().text,
              HasSubstr("went back from 5000000 to 1000 mJ"));
  fake_->energy_mj = 2000;
  EXPECT_DOUBLE_EQ(device->energy_counter()->value(), 2.0);
  fake_->energy_mj = 3'690'000'000'000'000;
  EXPECT_THAT(device->energy_counter().error().text, HasSubstr("more than the card can draw"));
}

TEST_F(NvmlDeviceTest, OneUnsupportedReadingTakesNothingElseWithIt) {
  for (const auto* call :
       {"nvmlDeviceGetSamples", "nvmlDeviceGetFieldValues", "nvmlDeviceGetTotalEnergyConsumption",
        "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetTemperature",
        "nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetSupportedMemoryClocks",
        "nvmlDeviceGetClockInfo", "nvmlDeviceGetPowerManagementLimitConstraints",
        "nvmlDeviceGetCudaComputeCapability", "nvmlDeviceGetMigMode"}) {
    *fake_ = testing::FakeNvml{};
    fake_->answers[call] = nvml_abi::kNotSupported;
    const auto device = open();
    ASSERT_NE(device, nullptr) << call;
    EXPECT_EQ(device->capabilities()[Reading::kEventReasons], Support::kYes) << call;
    EXPECT_TRUE(device->event_reasons()) << call;
  }
}

TEST_F(NvmlDeviceTest, CapabilitiesTellUnsupportedForbiddenAndFailedApart) {
  fake_->answers["nvmlDeviceGetTotalEnergyConsumption"] = nvml_abi::kNotSupported;
  fake_->answers["nvmlDeviceGetUtilizationRates"] = nvml_abi::kNoPermission;
  fake_->answers["nvmlDeviceGetTemperature"] = nvml_abi::kUnknown;
  const auto device = open();
  EXPECT_EQ(device->capabilities()[Reading::kEnergyCounter], Support::kNo);
  EXPECT_EQ(device->capabilities()[Reading::kUtilization], Support::kNoPermission);
  EXPECT_EQ(device->capabilities()[Reading::kTemperature], Support::kUnknown);
  EXPECT_EQ(device->capabilities()[Reading::kPowerSamples], Support::kYes);
}

TEST_F(NvmlDeviceTest, PowerUsageStandsInOnlyForWhatItIsOnThisCard) {
  fake_->answers["nvmlDeviceGetFieldValues"] = nvml_abi::kNotSupported;
  fake_->compute_major = 8;
  fake_->compute_minor = 0;  // GA100: instantaneous
  auto device = open();
  EXPECT_DOUBLE_EQ(device->power_instant()->value(), 303.0);
  EXPECT_EQ(device->power_average().error().kind, ErrorKind::kNotSupported);
  fake_->compute_minor = 6;  // other Ampere and newer: averaged over 1 s
  device = open();
  EXPECT_EQ(device->power_instant().error().kind, ErrorKind::kNotSupported);
  EXPECT_DOUBLE_EQ(device->power_average()->value(), 303.0);
}

TEST_F(NvmlDeviceTest, ListsProcessesAndUnknownMemoryAsAbsent) {
  const auto device = open();
  fake_->processes = 100;  // more than the first buffer
  const auto processes = device->compute_processes();
  ASSERT_TRUE(processes) << processes.error().text;
  ASSERT_EQ(processes->size(), 100u);
  EXPECT_EQ(processes->front().pid, 1000);
  EXPECT_EQ(processes->front().memory_bytes, 1u << 30);
  EXPECT_EQ(processes->back().memory_bytes, std::nullopt);
}

TEST_F(NvmlDeviceTest, ShutsNvmlDownOnceWhenTheLastUserGoes) {
  {
    auto driver = open_nvml({.library = library_}, clock_);
    ASSERT_TRUE(driver);
    auto device = (*driver)->open(0, gpu::Access::kReadOnly);
    ASSERT_TRUE(device);
    driver->reset();
    EXPECT_EQ(fake_->shutdowns, 0);
    EXPECT_TRUE((*device)->sm_clock());
  }
  EXPECT_EQ(fake_->inits, 1);
  EXPECT_EQ(fake_->shutdowns, 1);
}

class OldDriverTest : public NvmlFixture {
 protected:
  OldDriverTest() : NvmlFixture(GPOEO_FAKE_NVML_OLD) {}
};

TEST_F(OldDriverTest, LacksFeaturesAndWorksWithTheRest) {
  fake_->compute_major = 6;
  const auto device = open(gpu::Access::kControl);
  ASSERT_NE(device, nullptr);
  const auto& capabilities = device->capabilities();
  EXPECT_EQ(capabilities[Reading::kPowerSamples], Support::kNo);
  EXPECT_EQ(capabilities[Reading::kEnergyCounter], Support::kNo);
  EXPECT_EQ(capabilities[Reading::kCounters], Support::kNo);
  EXPECT_EQ(capabilities[gpu::Control::kMemoryClocks], Support::kNo);
  EXPECT_THAT(device->energy_counter().error().text, HasSubstr("is not in"));
  EXPECT_DOUBLE_EQ(device->power_instant()->value(), 303.0);
  EXPECT_EQ(device->power_average().error().kind, ErrorKind::kNotSupported);
  EXPECT_TRUE(device->event_reasons());  // by its older name
  EXPECT_EQ(device->compute_processes()->size(), 1u);
  EXPECT_TRUE(device->controls()->lock_sm_clocks({megahertz(345), megahertz(1500)}));
  EXPECT_EQ(device->controls()->lock_memory_clocks({megahertz(3201), megahertz(3201)}).error().kind,
            ErrorKind::kNotSupported);
}

}  // namespace
}  // namespace gpoeo::nvml
