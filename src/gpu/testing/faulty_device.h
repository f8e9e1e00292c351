// SPDX-License-Identifier: Apache-2.0
// A device that fails on demand. The plan is the test's; the device only obeys it.
//
//   FaultPlan faults;
//   FaultyDevice device(std::move(inner), faults);
//   faults.fail(Call::kLockSmClocks, {ErrorKind::kNoPermission, "no"}, 2);  // its second call
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "gpu/testing/decorated_device.h"

namespace gpoeo::gpu::testing {

// Thread rule: any thread; hang() and release() exist for that.
class FaultPlan final : public CallHook {
 public:
  // Each call of that name from now on fails, or with `nth` (1 = the next) only that one.
  void fail(Call call, Error error, int nth = 0);
  // The n-th call of any name from now on fails (1 = the next), the others do not.
  void fail_nth(int nth, Error error);
  // The n-th write (lock, reset, limit) from now on fails.
  void fail_nth_write(int nth, Error error);
  // From the n-th call on (1 = the next) everything answers kDeviceLost, until heal().
  void lose_from(int nth = 1);
  // Calls of that name do not come back until release(); then they go on as if nothing was.
  void hang(Call call);
  void release();
  // No fault any more; hanging calls are released.
  void heal();

  int calls() const;    // that reached the device or failed here
  int hanging() const;  // that wait for release() at this moment

  Status before(Call call, std::string_view arguments) override;
  void after(Call, std::string_view, const Error*) override {}

 private:
  enum class Scope { kNamed, kAny, kWrite };
  struct Fault {
    Scope scope;
    Call call;
    int countdown;  // 0: each time
    Error error;
  };
  void add(Fault fault);
  static bool matches(const Fault& fault, Call call);

  mutable std::mutex mutex_;
  std::condition_variable released_;
  std::vector<Fault> faults_;
  std::vector<Call> hanging_calls_;
  std::optional<int> lost_in_;
  int calls_ = 0;
  int waiting_ = 0;
};

class FaultyDevice final : public DecoratedDevice {
 public:
  FaultyDevice(std::unique_ptr<Device> inner, FaultPlan& plan)
      : DecoratedDevice(std::move(inner), plan) {}
};

}  // namespace gpoeo::gpu::testing
