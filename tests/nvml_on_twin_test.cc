// SPDX-License-Identifier: Apache-2.0
// The adapter as a client of the twin's library: what a real driver cannot be made to show here.
#include <gmock/gmock.h>

#include "tests/twin_nvml_scene.h"
#include "twin/card_front.h"
#include "twin/device_spec.h"
#include "twin/job_catalog.h"

namespace gpoeo::twin {
namespace {

using gpu::Reading;
using gpu::Support;
using ::testing::HasSubstr;

DeviceModel device_model(const char* name) {
  auto device = find_device(name);
  if (!device) {
    ADD_FAILURE() << device.error().text;
    std::abort();
  }
  return *device;
}

void start_job(NvmlScene& scene, const char* device, const char* name) {
  const auto job = find_job(device, name);
  ASSERT_TRUE(job) << job.error().text;
  const auto work = compile(*job, scene.segment().device(0));
  ASSERT_TRUE(work) << work.error().text;
  ASSERT_TRUE(scene.segment().attach_job(0, **work, JobOptions{}));
}

TEST(NvmlOnTwin, KnowsThatTheCardIsSimulated) {
  NvmlScene scene({device_model("a100"), device_model("h200")});
  EXPECT_EQ(scene.driver().device_count(), 2u);
  const auto device = scene.driver().open(1, gpu::Access::kReadOnly);
  ASSERT_TRUE(device);
  EXPECT_TRUE((*device)->identity().simulated);
  EXPECT_THAT((*device)->identity().name, HasSubstr("H200"));
  EXPECT_EQ((*device)->identity().index, 1u);
  EXPECT_EQ((*device)->controls(), nullptr);
}

TEST(NvmlOnTwin, CapabilitiesAreThoseOfTheDeviceFile) {
  for (const char* name : {"a100", "h200", "v100", "rtx3080ti", "titanx"}) {
    const DeviceModel model = device_model(name);
    NvmlScene scene({model});
    const auto device = scene.open();
    for (int i = 0; i < static_cast<int>(Reading::kCount); ++i) {
      const auto reading = static_cast<Reading>(i);
      EXPECT_EQ(device->capabilities()[reading] == Support::kYes,
                model.support(reading) == Support::kYes)
          << name << ": " << to_string(reading);
    }
    EXPECT_EQ(device->capabilities().sm_clocks().size(),
              static_cast<std::size_t>(model.sm_number[0]))
        << name;
  }
}

TEST(NvmlOnTwin, TellsTheLockInForceAsTheGuardNeedsIt) {
  NvmlScene scene({device_model("a100")});
  const auto device = scene.open();
  gpu::Controls& controls = *device->controls();
  EXPECT_EQ(controls.sm_clock_lock().value(), std::nullopt);
  const gpu::ClockRange range{megahertz(210), megahertz(1005)};
  ASSERT_TRUE(controls.lock_sm_clocks(range));
  EXPECT_EQ(controls.sm_clock_lock().value(), std::optional(range));
  EXPECT_EQ(controls.memory_clock_lock().value(), std::nullopt);
  ASSERT_TRUE(controls.reset_sm_clocks());
  EXPECT_EQ(controls.sm_clock_lock().value(), std::nullopt);
}

TEST(NvmlOnTwin, PowerSamplesAreOnTheTwinsTimeAndAgreeWithTheEnergyCounter) {
  NvmlScene scene({device_model("h200")});
  start_job(scene, "h200", "resnet50");
  const auto device = scene.open();
  scene.step(Seconds(120));
  const Instant begin = scene.segment().now();
  const double before = device->energy_counter()->value();
  double joules = 0;
  Instant last = begin;
  std::size_t count = 0;
  for (int i = 0; i < 20; ++i) {
    scene.step(Seconds(1));
    const auto samples = device->power_samples_since(last);
    ASSERT_TRUE(samples) << samples.error().text;
    for (const auto& sample : *samples) {
      EXPECT_GT(sample.time, last);
      joules += (sample.power * to_seconds(sample.time - last)).value();
      last = sample.time;
      ++count;
    }
  }
  EXPECT_LE(last, scene.segment().now());
  EXPECT_GT(count, 500u);
  const double counted = device->energy_counter()->value() - before;
  EXPECT_NEAR(joules / counted, 1.0, 0.02);
}

TEST(NvmlOnTwin, SampleTimesAreExactWhenTheTwinRunsMuchFasterThanTheWall) {
  const auto path =
      std::filesystem::temp_directory_path() / ("gpoeo-fast-" + std::to_string(getpid()));
  SegmentOptions options;
  options.cards = {device_model("h200")};
  options.speed = 1000;
  auto segment = Segment::create(path.string(), options);
  ASSERT_TRUE(segment) << segment.error().text;
  setenv(kSegmentEnvironment, path.c_str(), 1);
  auto driver = nvml::open_nvml({.library = GPOEO_TWIN_NVML}, (*segment)->twin_clock());
  ASSERT_TRUE(driver) << driver.error().text;
  auto device = (*driver)->open(0, gpu::Access::kReadOnly);
  ASSERT_TRUE(device);
  // No sample twice and none out of order, however the process is scheduled meanwhile.
  Instant last{};
  for (std::size_t seen = 0; seen < 2000;) {
    const auto samples = (*device)->power_samples_since(last);
    ASSERT_TRUE(samples) << samples.error().text;
    for (const auto& sample : *samples) {
      EXPECT_GT(sample.time - last, std::chrono::milliseconds(5));
      last = sample.time;
      ++seen;
    }
    EXPECT_LE(last, (*segment)->now());
  }
  EXPECT_TRUE(Segment::remove(path.string(), true));
}

TEST(NvmlOnTwin, CountersMoveWithTheirPeriod) {
  NvmlScene scene({device_model("h200")});
  start_job(scene, "h200", "resnet50");
  const auto device = scene.open(gpu::Access::kReadOnly);
  scene.step(Seconds(5));
  EXPECT_EQ(device->counters().error().kind, ErrorKind::kBusy);
  scene.step(Seconds(0.05));
  EXPECT_EQ(device->counters().error().kind, ErrorKind::kBusy);
  scene.step(Seconds(2));
  const auto counters = device->counters();
  ASSERT_TRUE(counters) << counters.error().text;
  EXPECT_NEAR(counters->window.value(), 2.05, 1e-6);
  ASSERT_TRUE(counters->sm_active);
  EXPECT_GT(*counters->sm_active, 0.05);
  EXPECT_LE(*counters->sm_active, 1.0);
}

TEST(NvmlOnTwin, FailedWriteNamesTheCureAndALostCardIsLost) {
  NvmlScene scene({device_model("a100")});
  const auto device = scene.open();
  const CardFront card(scene.segment(), 0);
  ASSERT_TRUE(card.inject_write_failure(1, ErrorKind::kNoPermission));
  const Status refused = device->controls()->lock_sm_clocks({megahertz(210), megahertz(1005)});
  EXPECT_EQ(refused.error().kind, ErrorKind::kNoPermission);
  EXPECT_THAT(refused.error().text, HasSubstr("run as root"));
  ASSERT_TRUE(card.set_lost(true));
  EXPECT_EQ(device->sm_clock().error().kind, ErrorKind::kDeviceLost);
  EXPECT_EQ(device->power_samples_since(Instant{}).error().kind, ErrorKind::kDeviceLost);
  ASSERT_TRUE(card.set_lost(false));
  EXPECT_TRUE(device->sm_clock());
}

TEST(NvmlOnTwin, MissingSegmentIsOneClearError) {
  setenv(kSegmentEnvironment, "/nonexistent/segment", 1);
  RealClock clock;
  const auto driver = nvml::open_nvml({.library = GPOEO_TWIN_NVML}, clock);
  EXPECT_EQ(driver.error().kind, ErrorKind::kDeviceLost);
}

}  // namespace
}  // namespace gpoeo::twin
