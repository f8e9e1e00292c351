// SPDX-License-Identifier: Apache-2.0
// What the adapter's tests share: the fake library, its state, and an opened card.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "gpu/nvml/nvml_driver.h"
#include "gpu/nvml/testing/fake_nvml.h"

namespace gpoeo::nvml {

class NvmlFixture : public ::testing::Test {
 protected:
  explicit NvmlFixture(std::string library = GPOEO_FAKE_NVML) : library_(std::move(library)) {
    void* handle = dlopen(library_.c_str(), RTLD_NOW | RTLD_LOCAL);
    auto* get = handle == nullptr
                    ? nullptr
                    : reinterpret_cast<testing::FakeNvmlStateFn*>(dlsym(handle, "fakeNvmlState"));
    if (get == nullptr) {
      ADD_FAILURE() << "no fake library at " << library_;
      std::abort();
    }
    fake_ = get();
    *fake_ = testing::FakeNvml{};
  }

  Result<std::unique_ptr<gpu::Device>> try_open(gpu::Access access = gpu::Access::kReadOnly) {
    auto driver = open_nvml({.library = library_}, clock_);
    if (!driver) return std::unexpected(driver.error());
    return (*driver)->open(0, access);
  }
  std::unique_ptr<gpu::Device> open(gpu::Access access = gpu::Access::kReadOnly) {
    auto device = try_open(access);
    if (!device) {
      ADD_FAILURE() << device.error().text;
      return nullptr;
    }
    return std::move(device).value();
  }

  std::string library_;
  testing::FakeNvml* fake_ = nullptr;
  RealClock clock_;
};

}  // namespace gpoeo::nvml
