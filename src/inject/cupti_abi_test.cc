// SPDX-License-Identifier: Apache-2.0
// Our declarations of CUPTI's interface against NVIDIA's header, where there is one.
#include "inject/cupti_abi.h"

#include <gtest/gtest.h>

#if __has_include(<cupti.h>)
#include <cuda.h>
#include <cupti.h>

#include <type_traits>

namespace gpoeo::inject::cupti {
namespace {

static_assert(kSuccess == CUPTI_SUCCESS);
static_assert(kMaxLimitReached == CUPTI_ERROR_MAX_LIMIT_REACHED);
static_assert(kMultipleSubscribers == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
static_assert(kDriverApi == CUPTI_CB_DOMAIN_DRIVER_API && kEnter == CUPTI_API_ENTER);
static_assert(is_known_version(CUPTI_API_VERSION));

#define SAME_ID(ours, theirs) static_assert(ours == CUPTI_DRIVER_TRACE_CBID_##theirs)
SAME_ID(kLaunch, cuLaunch);
SAME_ID(kLaunchGrid, cuLaunchGrid);
SAME_ID(kLaunchGridAsync, cuLaunchGridAsync);
SAME_ID(kLaunchKernel, cuLaunchKernel);
SAME_ID(kLaunchKernelPtsz, cuLaunchKernel_ptsz);
SAME_ID(kLaunchCooperative, cuLaunchCooperativeKernel);
SAME_ID(kLaunchCooperativePtsz, cuLaunchCooperativeKernel_ptsz);
SAME_ID(kLaunchCooperativeMultiDevice, cuLaunchCooperativeKernelMultiDevice);
SAME_ID(kGraphLaunch, cuGraphLaunch);
SAME_ID(kGraphLaunchPtsz, cuGraphLaunch_ptsz);
SAME_ID(kLaunchKernelEx, cuLaunchKernelEx);
SAME_ID(kLaunchKernelExPtsz, cuLaunchKernelEx_ptsz);

#define SAME_PLACE(our_type, our_field, their_type, their_field)                     \
  static_assert(offsetof(our_type, our_field) == offsetof(their_type, their_field)); \
  static_assert(sizeof(our_type::our_field) == sizeof(their_type::their_field))
SAME_PLACE(CallbackData, site, CUpti_CallbackData, callbackSite);
SAME_PLACE(CallbackData, parameters, CUpti_CallbackData, functionParams);
SAME_PLACE(CallbackData, context_uid, CUpti_CallbackData, contextUid);
SAME_PLACE(LaunchKernelParameters, function, cuLaunchKernel_params, f);
SAME_PLACE(LaunchKernelParameters, grid_x, cuLaunchKernel_params, gridDimX);
SAME_PLACE(LaunchKernelParameters, grid_z, cuLaunchKernel_params, gridDimZ);
SAME_PLACE(LaunchKernelParameters, stream, cuLaunchKernel_params, hStream);
SAME_PLACE(LaunchKernelParameters, grid_z, cuLaunchKernel_ptsz_params, gridDimZ);
SAME_PLACE(LaunchKernelParameters, stream, cuLaunchKernel_ptsz_params, hStream);
SAME_PLACE(LaunchKernelParameters, grid_z, cuLaunchCooperativeKernel_params, gridDimZ);
SAME_PLACE(LaunchKernelParameters, stream, cuLaunchCooperativeKernel_params, hStream);
SAME_PLACE(LaunchKernelParameters, stream, cuLaunchCooperativeKernel_ptsz_params, hStream);
SAME_PLACE(LaunchKernelParameters, function, CUDA_LAUNCH_PARAMS, function);
SAME_PLACE(LaunchKernelParameters, grid_x, CUDA_LAUNCH_PARAMS, gridDimX);
SAME_PLACE(LaunchKernelParameters, stream, CUDA_LAUNCH_PARAMS, hStream);
SAME_PLACE(LaunchKernelExParameters, config, cuLaunchKernelEx_params, config);
SAME_PLACE(LaunchKernelExParameters, function, cuLaunchKernelEx_params, f);
SAME_PLACE(LaunchKernelExParameters, function, cuLaunchKernelEx_ptsz_params, f);
SAME_PLACE(LaunchConfig, grid_x, CUlaunchConfig, gridDimX);
SAME_PLACE(LaunchConfig, stream, CUlaunchConfig, hStream);
SAME_PLACE(LaunchGridParameters, grid_height, cuLaunchGrid_params, grid_height);
SAME_PLACE(LaunchGridAsyncParameters, stream, cuLaunchGridAsync_params, hStream);
SAME_PLACE(MultiDeviceParameters, list, cuLaunchCooperativeKernelMultiDevice_params,
           launchParamsList);
SAME_PLACE(MultiDeviceParameters, devices, cuLaunchCooperativeKernelMultiDevice_params, numDevices);
SAME_PLACE(GraphLaunchParameters, graph, cuGraphLaunch_params, hGraph);
SAME_PLACE(GraphLaunchParameters, stream, cuGraphLaunch_params, hStream);
SAME_PLACE(GraphLaunchParameters, stream, cuGraphLaunch_ptsz_params, hStream);

}  // namespace
}  // namespace gpoeo::inject::cupti

#define GPOEO_HAS_CUPTI_HEADER 1
#endif

namespace gpoeo::inject::cupti {
namespace {

TEST(CuptiAbi, IsWhatNvidiasHeaderSays) {
#ifndef GPOEO_HAS_CUPTI_HEADER
  GTEST_SKIP() << "no cupti.h was there when this was built; static_asserts did not run";
#endif
}

TEST(CuptiAbi, KnowsVersions11To13) {
  EXPECT_TRUE(is_known_version(13));      // CUDA 11.0
  EXPECT_TRUE(is_known_version(28));      // CUDA 12.9
  EXPECT_TRUE(is_known_version(130001));  // CUDA 13.0
  EXPECT_FALSE(is_known_version(12));     // CUDA 10
  EXPECT_FALSE(is_known_version(140000));
}

}  // namespace
}  // namespace gpoeo::inject::cupti
