// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml/library.h"

#include <gmock/gmock.h>

#include "gpu/nvml/nvml_fixture.h"

namespace gpoeo::nvml {
namespace {

using ::testing::HasSubstr;

using LibraryTest = NvmlFixture;

TEST_F(LibraryTest, EachReturnCodeBecomesAKindACallerCanActOn) {
  const struct {
    nvml_abi::Return code;
    ErrorKind kind;
    const char* part;
  } kCases[] = {
      {nvml_abi::kInvalidArgument, ErrorKind::kInvalid, "NVML error 2"},
      {nvml_abi::kNotSupported, ErrorKind::kNotSupported, "NVML error 3"},
      {nvml_abi::kNoPermission, ErrorKind::kNoPermission, "run as root"},
      {nvml_abi::kNotFound, ErrorKind::kNotFound, ""},
      {nvml_abi::kDriverNotLoaded, ErrorKind::kDeviceLost, "modprobe"},
      {nvml_abi::kTimeout, ErrorKind::kTimeout, ""},
      {nvml_abi::kFunctionNotFound, ErrorKind::kNotSupported, "newer NVIDIA driver"},
      {nvml_abi::kGpuIsLost, ErrorKind::kDeviceLost, "dmesg"},
      {nvml_abi::kResetRequired, ErrorKind::kDeviceLost, "--gpu-reset"},
      {nvml_abi::kOperatingSystem, ErrorKind::kNoPermission, "cgroup"},
      {nvml_abi::kLibRmVersionMismatch, ErrorKind::kDeviceLost, "reboot"},
      {nvml_abi::kInUse, ErrorKind::kBusy, ""},
      {nvml_abi::kUnknown, ErrorKind::kIo, "daemon-reload"},
      {static_cast<nvml_abi::Return>(777), ErrorKind::kIo, "NVML error 777"},
  };
  const auto library = Library::open(library_);
  ASSERT_TRUE(library);
  for (const auto& c : kCases) {
    const Status status = library->check(c.code, "GPU 3", "nvmlDeviceGetName");
    ASSERT_FALSE(status) << c.code;
    EXPECT_EQ(status.error().kind, c.kind) << c.code;
    EXPECT_THAT(status.error().text, HasSubstr("GPU 3: nvmlDeviceGetName: "));
    EXPECT_THAT(status.error().text, HasSubstr(c.part));
  }
  EXPECT_TRUE(library->check(nvml_abi::kSuccess, "GPU 3", "nvmlDeviceGetName"));
}

TEST_F(LibraryTest, AbsentLibraryIsNotFoundWithTheCure) {
  const auto library = Library::open("libno-such-nvml.so.1");
  EXPECT_EQ(library.error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(library.error().text, HasSubstr("install the NVIDIA driver"));
}

TEST_F(LibraryTest, AnotherLibraryIsNotTakenForNvml) {
  const auto library = Library::open("libm.so.6");
  EXPECT_EQ(library.error().kind, ErrorKind::kNotSupported);
  EXPECT_THAT(library.error().text, HasSubstr("is not an NVML library"));
}

TEST_F(LibraryTest, DriverThatDoesNotAnswerIsOneClearError) {
  fake_->answers["nvmlInit"] = nvml_abi::kLibRmVersionMismatch;
  const auto driver = open_nvml({.library = library_}, clock_);
  EXPECT_EQ(driver.error().kind, ErrorKind::kDeviceLost);
  EXPECT_THAT(driver.error().text, HasSubstr("nvmlInit"));
  EXPECT_EQ(fake_->shutdowns, 0);
}

TEST_F(LibraryTest, UnknownIndexNamesWhatThereIs) {
  auto driver = open_nvml({.library = library_}, clock_);
  ASSERT_TRUE(driver);
  EXPECT_EQ((*driver)->device_count(), 1u);
  EXPECT_EQ((*driver)->version(), "580.1");
  EXPECT_THAT((*driver)->open(4, gpu::Access::kReadOnly).error().text, HasSubstr("no GPU 4"));
}

}  // namespace
}  // namespace gpoeo::nvml
