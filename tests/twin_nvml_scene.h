// SPDX-License-Identifier: Apache-2.0
// For tests in this process: simulated cards on manual time in a segment of their own, and the
// adapter (src/gpu/nvml) as a client of the twin's libnvidia-ml.so.1 on them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/nvml/nvml_driver.h"
#include "twin/compile.h"
#include "twin/segment.h"

namespace gpoeo::twin {

class NvmlScene {
 public:
  explicit NvmlScene(std::vector<DeviceModel> cards) {
    static std::atomic<int> made = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("gpoeo-nvml-scene-" + std::to_string(getpid()) + "-" + std::to_string(++made));
    SegmentOptions options;
    options.cards = std::move(cards);
    options.manual_time = true;
    auto segment = Segment::create(path_.string(), options);
    if (!segment) {
      ADD_FAILURE() << segment.error().text;
      std::abort();
    }
    segment_ = std::move(*segment);
    setenv(kSegmentEnvironment, path_.c_str(), 1);
    auto driver = nvml::open_nvml({.library = GPOEO_TWIN_NVML}, segment_->twin_clock());
    if (!driver) {
      ADD_FAILURE() << driver.error().text;
      std::abort();
    }
    driver_ = std::move(*driver);
  }
  ~NvmlScene() {
    driver_.reset();
    segment_.reset();
    EXPECT_TRUE(Segment::remove(path_.string(), true));
  }
  NvmlScene(const NvmlScene&) = delete;
  NvmlScene& operator=(const NvmlScene&) = delete;

  Segment& segment() { return *segment_; }
  gpu::Driver& driver() { return *driver_; }
  void step(Seconds time) { EXPECT_TRUE(segment_->step(to_duration(time))); }
  std::unique_ptr<gpu::Device> open(gpu::Access access = gpu::Access::kControl) {
    auto device = driver_->open(0, access);
    if (!device) {
      ADD_FAILURE() << device.error().text;
      std::abort();
    }
    return std::move(*device);
  }

 private:
  std::filesystem::path path_;
  std::unique_ptr<Segment> segment_;
  std::unique_ptr<gpu::Driver> driver_;
};

}  // namespace gpoeo::twin
