// SPDX-License-Identifier: Apache-2.0
// The adapter on a real GPU, read-only: it opens no controls, so no setter can be reached. Skips,
// saying why, where there is no card. Run it beside a job:  ctest -L hw --verbose
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>

#include "gpu/nvml/nvml_driver.h"

namespace gpoeo::gpu {
namespace {

class NvmlCard : public ::testing::Test {
 protected:
  void SetUp() override {
    auto driver = nvml::open_nvml({}, clock_);
    if (!driver) GTEST_SKIP() << driver.error().text;
    if ((*driver)->device_count() == 0) GTEST_SKIP() << "the driver shows no GPU";
    auto device = (*driver)->open(0, Access::kReadOnly);
    ASSERT_TRUE(device) << device.error().text;
    device_ = std::move(*device);
    if (device_->identity().simulated) GTEST_SKIP() << "the loader's NVML library is the twin's";
    std::printf("%s, driver %s, %s, %s\n", device_->identity().name.c_str(),
                (*driver)->version().c_str(), device_->identity().uuid.c_str(),
                device_->identity().pci_bus_id.c_str());
  }

  // What was promised at opening is what a call gives.
  template <typename T>
  void expect_as_promised(Reading reading, const Result<T>& result, const std::string& shown) {
    const Support support = device_->capabilities()[reading];
    std::printf("  %-24s %-16s %s\n", std::string(to_string(reading)).c_str(),
                std::string(to_string(support)).c_str(),
                result ? shown.c_str() : result.error().text.c_str());
    if (support == Support::kYes) {
      EXPECT_TRUE(result) << result.error().text;
    } else if (support == Support::kNo) {
      EXPECT_FALSE(result);
    }
  }
  template <typename Unit>
  void expect_number(Reading reading, const Result<Unit>& result, double per_unit) {
    expect_as_promised(reading, result,
                       result ? std::to_string(result->value() / per_unit) : std::string());
  }

  RealClock clock_;
  StopFlag stop_;
  std::unique_ptr<Device> device_;
};

TEST_F(NvmlCard, EachReadingIsWhatItsCapabilitySays) {
  expect_number(Reading::kPowerInstant, device_->power_instant(), 1);
  expect_number(Reading::kPowerAverage, device_->power_average(), 1);
  expect_number(Reading::kEnergyCounter, device_->energy_counter(), 1);
  expect_number(Reading::kSmClock, device_->sm_clock(), 1e6);
  expect_number(Reading::kMemoryClock, device_->memory_clock(), 1e6);
  expect_number(Reading::kTemperature, device_->temperature(), 1);
  const auto utilization = device_->utilization();
  expect_as_promised(Reading::kUtilization, utilization,
                     utilization ? std::to_string(utilization->gpu) : "");
  const auto reasons = device_->event_reasons();
  expect_as_promised(Reading::kEventReasons, reasons, reasons ? to_string(*reasons) : "");
  const auto processes = device_->compute_processes();
  expect_as_promised(Reading::kProcesses, processes,
                     processes ? std::to_string(processes->size()) : "");
  EXPECT_EQ(device_->controls(), nullptr);
  EXPECT_FALSE(device_->capabilities().sm_clocks().empty());
}

TEST_F(NvmlCard, CountersComeOnceAWholePeriodHasPassed) {
  const auto first = device_->counters();
  if (!first && first.error().kind == ErrorKind::kNotSupported) GTEST_SKIP() << first.error().text;
  EXPECT_EQ(first.error().kind, ErrorKind::kBusy);
  clock_.sleep_until(clock_.now() + std::chrono::milliseconds(1050), stop_);
  const auto counters = device_->counters();
  ASSERT_TRUE(counters) << counters.error().text;
  std::printf("  over %.2f s: SM active %.3f, DRAM active %.3f\n", counters->window.value(),
              counters->sm_active.value_or(0), counters->dram_active.value_or(0));
}

// The driver's samples, integrated, agree with its energy counter within 1.5 % over 20 s.
TEST_F(NvmlCard, IntegratedSamplesAgreeWithTheEnergyCounter) {
  if (device_->capabilities()[Reading::kPowerSamples] != Support::kYes ||
      device_->capabilities()[Reading::kEnergyCounter] != Support::kYes) {
    GTEST_SKIP() << "needs the sample buffer and the energy counter";
  }
  // Both ends just after a step of the counter, whose steps are 100 ms apart.
  const auto next_step = [&] {
    const double value = device_->energy_counter()->value();
    double now = value;
    while (now == value) now = device_->energy_counter()->value();
    return std::pair(clock_.now(), now);
  };
  const auto [begin, energy_begin] = next_step();
  double joules = 0;
  Instant last = begin;
  while (clock_.now() - begin < std::chrono::seconds(20)) {
    clock_.sleep_until(clock_.now() + std::chrono::milliseconds(500), stop_);
    const auto samples = device_->power_samples_since(last).value();
    for (const auto& sample : samples) {
      joules += (sample.power * to_seconds(sample.time - last)).value();
      last = sample.time;
    }
  }
  const auto [end, energy_end] = next_step();
  const double counted = energy_end - energy_begin;
  // The samples end a little before the counter does: compare mean powers.
  const double sampled_w = joules / to_seconds(last - begin).value();
  const double counted_w = counted / to_seconds(end - begin).value();
  std::printf("  samples %.2f W, energy counter %.2f W, ratio %.4f\n", sampled_w, counted_w,
              sampled_w / counted_w);
  EXPECT_NEAR(sampled_w / counted_w, 1.0, 0.015);
}

}  // namespace
}  // namespace gpoeo::gpu
