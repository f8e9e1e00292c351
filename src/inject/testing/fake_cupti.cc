// SPDX-License-Identifier: Apache-2.0
// A libcupti.so.12 for tests: one subscriber, callbacks of the driver API domain, and the launches
// of fake_cuda_program.cc in place of a driver's. FAKE_CUPTI_VERSION sets what it says to be.
#include <stdlib.h>

#include <atomic>

#include "inject/cupti_abi.h"

namespace {

using namespace gpoeo::inject::cupti;

constexpr std::uint32_t kMostIds = 1024;
std::atomic<Callback> g_callback{nullptr};
std::atomic<void*> g_user{nullptr};
std::atomic<std::uint8_t> g_enabled[kMostIds];

}  // namespace

extern "C" {

Result cuptiGetVersion(std::uint32_t* version) {
  const char* given = getenv("FAKE_CUPTI_VERSION");
  *version = given != nullptr ? static_cast<std::uint32_t>(atoi(given)) : 26;
  return kSuccess;
}

Result cuptiSubscribe(Subscriber* subscriber, Callback callback, void* user) {
  Callback nobody = nullptr;
  if (!g_callback.compare_exchange_strong(nobody, callback)) return kMultipleSubscribers;
  g_user = user;
  *subscriber = reinterpret_cast<Subscriber>(&g_callback);
  return kSuccess;
}

Result cuptiUnsubscribe(Subscriber /*subscriber*/) {
  for (auto& enabled : g_enabled) enabled = 0;
  g_callback = nullptr;
  return kSuccess;
}

#ifndef FAKE_LACKS_CALLBACKS
Result cuptiEnableCallback(std::uint32_t enable, Subscriber /*subscriber*/, int domain,
                           std::uint32_t id) {
  if (domain != kDriverApi || id >= kMostIds) return 1;
  g_enabled[id] = static_cast<std::uint8_t>(enable);
  return kSuccess;
}
#endif

// What the driver would do around a call: a callback on entry and one on exit.
void fakeDriverCall(std::uint32_t id, const void* parameters, std::uint32_t context) {
  const Callback callback = g_callback;
  if (callback == nullptr || !g_enabled[id]) return;
  CallbackData data{kEnter, "fake", parameters, nullptr, "kernel", nullptr, context};
  callback(g_user, kDriverApi, id, &data);
  data.site = kEnter + 1;
  callback(g_user, kDriverApi, id, &data);
}
}
