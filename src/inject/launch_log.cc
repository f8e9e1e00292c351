// SPDX-License-Identifier: Apache-2.0
#include "inject/launch_log.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "inject/redirect.h"
#include "inject/say.h"
#include "inject/stream_numbers.h"

namespace gpoeo::inject {
namespace {

using wire::QuietReason;
using wire::RecordKind;
using wire::RingState;

constexpr std::uint32_t kLaunchIds[] = {
    cupti::kLaunch,         cupti::kLaunchGrid,         cupti::kLaunchGridAsync,
    cupti::kLaunchKernel,   cupti::kLaunchKernelPtsz,   cupti::kLaunchCooperative,
    cupti::kGraphLaunch,    cupti::kGraphLaunchPtsz,    cupti::kLaunchCooperativePtsz,
    cupti::kLaunchKernelEx, cupti::kLaunchKernelExPtsz, cupti::kLaunchCooperativeMultiDevice};

// Constant-initialised and trivially destructible: there before and after everything else.
struct Log {
  // What each launch reads lies on one line of the cache, which nobody writes then.
  alignas(64) wire::RingMapping ring;
  std::atomic<bool> quiet{false};    // in this process; a forked child is
  std::atomic<bool> stepped{false};  // aside, for good
  cupti::Subscriber subscriber = nullptr;
  alignas(64) StreamNumbers streams;
  CuptiLibrary cupti;
};
constinit Log g_log;

std::int64_t read_clock(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

constexpr std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ULL;
  x ^= x >> 32;
  return x;
}

std::uint64_t function_id(const void* function, unsigned x, unsigned y, unsigned z) {
  const std::uint64_t grid = mix((std::uint64_t{x} << 32 | y) * 3 + z);
  return mix(reinterpret_cast<std::uint64_t>(function) + grid);
}

// Handles of default streams are the same for each context, and for each thread.
std::uint64_t stream_key(const void* stream, std::uint32_t context, bool per_thread) {
  auto key = reinterpret_cast<std::uint64_t>(stream) + mix(context);
  const auto handle = reinterpret_cast<std::uint64_t>(stream);
  constexpr std::uint64_t kPerThreadHandle = 2;  // CU_STREAM_PER_THREAD
  if ((per_thread && handle == 0) || handle == kPerThreadHandle) {
    key += mix(reinterpret_cast<std::uint64_t>(__builtin_thread_pointer()));
  }
  return key;
}

void log(RecordKind kind, std::uint64_t function, const void* stream, std::uint32_t context,
         bool per_thread = false) {
  g_log.ring.push(kind, read_clock(CLOCK_MONOTONIC), function,
                  g_log.streams.number(stream_key(stream, context, per_thread)));
}

void go_quiet(QuietReason reason) {
  g_log.quiet.store(true, std::memory_order_relaxed);
  g_log.ring.set_state(RingState::kQuiet, reason);
}

// Somebody else subscribes to CUPTI: there is room for one, and it shall not be us.
void step_aside() {
  // A forked child has no CUPTI any more, and its parent's ring is not its own.
  if (g_log.quiet.load(std::memory_order_relaxed) || g_log.stepped.exchange(true)) return;
  go_quiet(QuietReason::kSteppedAside);
  const cupti::Result result = g_log.cupti.unsubscribe(g_log.subscriber);
  say("another CUPTI user: stepped aside (%d)", result);
}

cupti::Result subscribe_for_other(cupti::Subscriber* subscriber, cupti::Callback callback,
                                  void* user) {
  step_aside();
  return g_log.cupti.subscribe(subscriber, callback, user);
}

cupti::Result subscribe_v2_for_other(cupti::Subscriber* subscriber, cupti::Callback callback,
                                     void* user, cupti::SubscriberParameters* parameters) {
  step_aside();
  return g_log.cupti.subscribe_v2(subscriber, callback, user, parameters);
}

// The ring belongs to the parent.
void in_forked_child() { g_log.quiet.store(true, std::memory_order_relaxed); }

void make_way_for_others() {
  int places =
      redirect_calls("libcupti", "cuptiSubscribe", reinterpret_cast<void*>(g_log.cupti.subscribe),
                     reinterpret_cast<void*>(&subscribe_for_other));
  if (g_log.cupti.subscribe_v2 != nullptr) {
    places += redirect_calls("libcupti", "cuptiSubscribe_v2",
                             reinterpret_cast<void*>(g_log.cupti.subscribe_v2),
                             reinterpret_cast<void*>(&subscribe_v2_for_other));
  }
  say("looks out for other CUPTI users in %d places", places);
}

QuietReason subscribe() {
  const cupti::Result result = g_log.cupti.subscribe(&g_log.subscriber, &on_driver_call, nullptr);
  if (result == cupti::kMultipleSubscribers || result == cupti::kMaxLimitReached) {
    return QuietReason::kOtherSubscriber;
  }
  if (result != cupti::kSuccess) {
    say("cuptiSubscribe: %d", result);
    return QuietReason::kSubscribeFailed;
  }
  make_way_for_others();
  bool kernels = false;
  for (const std::uint32_t id : kLaunchIds) {
    const cupti::Result enabled =
        g_log.cupti.enable_callback(1, g_log.subscriber, cupti::kDriverApi, id);
    // Old versions do not know the newest calls.
    if (enabled == cupti::kSuccess && id == cupti::kLaunchKernel) kernels = true;
  }
  if (kernels) return QuietReason::kNone;
  g_log.stepped.store(true);
  g_log.cupti.unsubscribe(g_log.subscriber);
  return QuietReason::kNoLaunchCallbacks;
}

// Not inlined: half of all callbacks come when a call returns, and shall cost next to nothing.
[[gnu::noinline]] void on_launch(std::uint32_t id, const cupti::CallbackData* call) {
  if (g_log.quiet.load(std::memory_order_relaxed)) return;
  // gpoeo may be gone for good: the rest of the job then pays for no clock.
  if (g_log.ring.drop_if_full()) return;
  const std::uint32_t context = call->context_uid;
  switch (id) {
    case cupti::kLaunchKernel:
    case cupti::kLaunchKernelPtsz:
    case cupti::kLaunchCooperative:
    case cupti::kLaunchCooperativePtsz: {
      const auto* p = static_cast<const cupti::LaunchKernelParameters*>(call->parameters);
      const bool per_thread = id == cupti::kLaunchKernelPtsz || id == cupti::kLaunchCooperativePtsz;
      log(RecordKind::kKernelLaunch, function_id(p->function, p->grid_x, p->grid_y, p->grid_z),
          p->stream, context, per_thread);
      return;
    }
    case cupti::kLaunchKernelEx:
    case cupti::kLaunchKernelExPtsz: {
      const auto* p = static_cast<const cupti::LaunchKernelExParameters*>(call->parameters);
      if (p->config == nullptr) return;  // the driver will refuse it
      const cupti::LaunchConfig& c = *p->config;
      log(RecordKind::kKernelLaunch, function_id(p->function, c.grid_x, c.grid_y, c.grid_z),
          c.stream, context, id == cupti::kLaunchKernelExPtsz);
      return;
    }
    case cupti::kGraphLaunch:
    case cupti::kGraphLaunchPtsz: {
      const auto* p = static_cast<const cupti::GraphLaunchParameters*>(call->parameters);
      log(RecordKind::kGraphLaunch, function_id(p->graph, 0, 0, 0), p->stream, context,
          id == cupti::kGraphLaunchPtsz);
      return;
    }
    case cupti::kLaunchCooperativeMultiDevice: {
      const auto* p = static_cast<const cupti::MultiDeviceParameters*>(call->parameters);
      if (p->list == nullptr || p->devices == 0) return;
      const cupti::LaunchKernelParameters& first = *p->list;  // one launch, however many devices
      log(RecordKind::kKernelLaunch,
          function_id(first.function, first.grid_x, first.grid_y, first.grid_z), first.stream,
          context);
      return;
    }
    case cupti::kLaunchGridAsync: {
      const auto* p = static_cast<const cupti::LaunchGridAsyncParameters*>(call->parameters);
      log(RecordKind::kKernelLaunch,
          function_id(p->function, static_cast<unsigned>(p->grid_width),
                      static_cast<unsigned>(p->grid_height), 1),
          p->stream, context);
      return;
    }
    case cupti::kLaunchGrid: {
      const auto* p = static_cast<const cupti::LaunchGridParameters*>(call->parameters);
      log(RecordKind::kKernelLaunch,
          function_id(p->function, static_cast<unsigned>(p->grid_width),
                      static_cast<unsigned>(p->grid_height), 1),
          nullptr, context);
      return;
    }
    case cupti::kLaunch: {
      void* function = nullptr;
      memcpy(&function, call->parameters, sizeof function);
      log(RecordKind::kKernelLaunch, function_id(function, 1, 1, 1), nullptr, context);
      return;
    }
    default:
      return;
  }
}

}  // namespace

void on_driver_call(void* /*user*/, int domain, std::uint32_t id, const void* data) {
  const auto* call = static_cast<const cupti::CallbackData*>(data);
  if (domain == cupti::kDriverApi && call->site == cupti::kEnter) on_launch(id, call);
}

void start_launch_log(const char* folder) {
  const std::int64_t offset_ns = read_clock(CLOCK_REALTIME) - read_clock(CLOCK_MONOTONIC);
  if (const int error =
          g_log.ring.create(folder, wire::kRingSuffix, wire::RingProducer::kInjectedLibrary,
                            offset_ns, wire::kDefaultRingCapacity);
      error != 0) {
    say("no ring in %s: %s", folder, strerror(error));
    return;
  }
  if (pthread_atfork(nullptr, nullptr, in_forked_child) != 0) {
    return go_quiet(QuietReason::kSubscribeFailed);
  }
  const CuptiFound found = find_cupti(&g_log.cupti);
  g_log.ring.set_cupti_version(g_log.cupti.version);
  if (found == CuptiFound::kNone) return go_quiet(QuietReason::kNoCupti);
  if (found == CuptiFound::kUnknownVersion) return go_quiet(QuietReason::kCuptiUnknown);
  if (const QuietReason reason = subscribe(); reason != QuietReason::kNone) {
    say("no launch log: reason %u", static_cast<unsigned>(reason));
    go_quiet(reason);
  }
}

}  // namespace gpoeo::inject
