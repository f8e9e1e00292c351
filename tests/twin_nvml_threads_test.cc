// SPDX-License-Identifier: Apache-2.0
// The twin's library from many threads, through init and shutdown, and over a fork.
#include <dlfcn.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>
#include <vector>

#include "gpu/nvml/abi.h"
#include "tests/twin_nvml_scene.h"
#include "twin/device_spec.h"

namespace gpoeo::twin {
namespace {

using nvml_abi::DeviceHandle;
using nvml_abi::Return;

class TwinNvmlThreads : public ::testing::Test {
 protected:
  TwinNvmlThreads() : scene_({find_device("h200").value()}) {
    bind(init_, "nvmlInit_v2");
    bind(shutdown_, "nvmlShutdown");
    bind(handle_, "nvmlDeviceGetHandleByIndex_v2");
    bind(power_, "nvmlDeviceGetPowerUsage");
    bind(lock_, "nvmlDeviceSetGpuLockedClocks");
    bind(gpm_alloc_, "nvmlGpmSampleAlloc");
    bind(gpm_get_, "nvmlGpmSampleGet");
    bind(gpm_free_, "nvmlGpmSampleFree");
    EXPECT_EQ(handle_(0, &card_), nvml_abi::kSuccess);
  }

  template <typename Function>
  void bind(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    ASSERT_NE(function, nullptr) << name;
  }

  // What a client may meet while another shuts the library down.
  static bool fine(Return code) {
    return code == nvml_abi::kSuccess || code == nvml_abi::kUninitialized;
  }

  void read_write_and_sample() {
    unsigned milliwatts = 0;
    EXPECT_TRUE(fine(power_(card_, &milliwatts)));
    EXPECT_TRUE(fine(lock_(card_, 345, 1200)));
    nvml_abi::GpmSample sample = nullptr;
    if (gpm_alloc_(&sample) != nvml_abi::kSuccess) return;
    EXPECT_TRUE(fine(gpm_get_(card_, sample)));
    EXPECT_TRUE(fine(gpm_free_(sample)));
  }

  NvmlScene scene_;
  void* library_ = dlopen(GPOEO_TWIN_NVML, RTLD_NOW | RTLD_LOCAL);
  DeviceHandle card_ = nullptr;
  Return (*init_)() = nullptr;
  Return (*shutdown_)() = nullptr;
  Return (*handle_)(unsigned, DeviceHandle*) = nullptr;
  Return (*power_)(DeviceHandle, unsigned*) = nullptr;
  Return (*lock_)(DeviceHandle, unsigned, unsigned) = nullptr;
  Return (*gpm_alloc_)(nvml_abi::GpmSample*) = nullptr;
  Return (*gpm_get_)(DeviceHandle, nvml_abi::GpmSample) = nullptr;
  Return (*gpm_free_)(nvml_abi::GpmSample) = nullptr;
};

TEST_F(TwinNvmlThreads, ReadWriteInitAndShutDownAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 300; ++n) read_write_and_sample();
    });
  }
  threads.emplace_back([&] {
    for (int n = 0; n < 300; ++n) {
      EXPECT_EQ(init_(), nvml_abi::kSuccess);
      EXPECT_EQ(shutdown_(), nvml_abi::kSuccess);
    }
  });
  for (auto& thread : threads) thread.join();
  unsigned milliwatts = 0;
  EXPECT_EQ(power_(card_, &milliwatts), nvml_abi::kSuccess);  // the scene's own init still counts
}

TEST_F(TwinNvmlThreads, ChildForkedWhileOtherThreadsCallCanCall) {
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!done) read_write_and_sample();
    });
  }
  int answered = 0;
  constexpr int kForks = 30;
  for (int i = 0; i < kForks; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      read_write_and_sample();
      _exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    answered += status == 0;
  }
  done = true;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(answered, kForks);
}

}  // namespace
}  // namespace gpoeo::twin
