// SPDX-License-Identifier: Apache-2.0
// The little of CUPTI's binary interface that we use, declared by ourselves so that the project
// builds without the CUDA toolkit. The interface has been the same from CUDA 11 to 13;
// cupti_abi_test.cc holds these declarations against NVIDIA's header where there is one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpoeo::inject::cupti {

using Result = int;
inline constexpr Result kSuccess = 0;
inline constexpr Result kMaxLimitReached = 12;      // CUDA 11: "there is a subscriber already"
inline constexpr Result kMultipleSubscribers = 39;  // the same, since CUDA 12

using Subscriber = struct SubscriberTag*;
using Callback = void (*)(void* user, int domain, std::uint32_t id, const void* data);

inline constexpr int kDriverApi = 1;  // callback domain
inline constexpr int kEnter = 0;      // callback site

// What a callback of the driver API domain is given; more fields follow.
struct CallbackData {
  int site;
  const char* function_name;
  const void* parameters;
  void* return_value;
  const char* symbol_name;
  void* context;
  std::uint32_t context_uid;
};

// Callback ids of the driver API domain. "Ptsz": the same call with per-thread default streams.
inline constexpr std::uint32_t kLaunch = 115;
inline constexpr std::uint32_t kLaunchGrid = 116;
inline constexpr std::uint32_t kLaunchGridAsync = 117;
inline constexpr std::uint32_t kLaunchKernel = 307;
inline constexpr std::uint32_t kLaunchKernelPtsz = 442;
inline constexpr std::uint32_t kLaunchCooperative = 477;
inline constexpr std::uint32_t kLaunchCooperativePtsz = 478;
inline constexpr std::uint32_t kLaunchCooperativeMultiDevice = 480;
inline constexpr std::uint32_t kGraphLaunch = 514;
inline constexpr std::uint32_t kGraphLaunchPtsz = 515;
inline constexpr std::uint32_t kLaunchKernelEx = 652;  // since CUDA 11.8
inline constexpr std::uint32_t kLaunchKernelExPtsz = 653;

// `parameters` of those calls, as far as we read them.
struct LaunchKernelParameters {  // and cooperative; kLaunch has `function` only
  void* function;
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_bytes;
  void* stream;
};
struct LaunchConfig {
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_bytes;
  void* stream;
};
struct LaunchKernelExParameters {
  const LaunchConfig* config;
  void* function;
};
struct LaunchGridParameters {
  void* function;
  int grid_width, grid_height;
};
struct LaunchGridAsyncParameters {
  void* function;
  int grid_width, grid_height;
  void* stream;
};
struct MultiDeviceParameters {
  const LaunchKernelParameters* list;  // one for each device, kMultiDeviceStride apart
  unsigned devices;
};
struct GraphLaunchParameters {
  void* graph;
  void* stream;
};

// Parameters of cuptiSubscribe_v2, CUDA 13; only passed on.
struct SubscriberParameters;

using GetVersion = Result (*)(std::uint32_t* version);
using Subscribe = Result (*)(Subscriber* subscriber, Callback callback, void* user);
using SubscribeV2 = Result (*)(Subscriber* subscriber, Callback callback, void* user,
                               SubscriberParameters* parameters);
using Unsubscribe = Result (*)(Subscriber subscriber);
using EnableCallback = Result (*)(std::uint32_t enable, Subscriber subscriber, int domain,
                                  std::uint32_t id);

// cuptiGetVersion() counts 13 to 28 for CUDA 11.0 to 12.9, then says 13xxyy for CUDA 13.
constexpr bool is_known_version(std::uint32_t version) {
  return (version >= 13 && version < 100) || (version >= 130000 && version < 140000);
}

}  // namespace gpoeo::inject::cupti
