// SPDX-License-Identifier: Apache-2.0
#include "gpu/testing/faulty_device.h"

#include <algorithm>
#include <string>
#include <utility>

namespace gpoeo::gpu::testing {

void FaultPlan::add(Fault fault) {
  const std::lock_guard lock(mutex_);
  faults_.push_back(std::move(fault));
}

void FaultPlan::fail(Call call, Error error, int nth) {
  add({Scope::kNamed, call, nth, std::move(error)});
}

void FaultPlan::fail_nth(int nth, Error error) {
  add({Scope::kAny, Call::kCount, nth, std::move(error)});
}

void FaultPlan::fail_nth_write(int nth, Error error) {
  add({Scope::kWrite, Call::kCount, nth, std::move(error)});
}

void FaultPlan::lose_from(int nth) {
  const std::lock_guard lock(mutex_);
  lost_in_ = nth;
}

void FaultPlan::hang(Call call) {
  const std::lock_guard lock(mutex_);
  hanging_calls_.push_back(call);
}

void FaultPlan::release() {
  const std::lock_guard lock(mutex_);
  hanging_calls_.clear();
  released_.notify_all();
}

void FaultPlan::heal() {
  const std::lock_guard lock(mutex_);
  faults_.clear();
  lost_in_.reset();
  hanging_calls_.clear();
  released_.notify_all();
}

int FaultPlan::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

int FaultPlan::hanging() const {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

bool FaultPlan::matches(const Fault& fault, Call call) {
  switch (fault.scope) {
    case Scope::kNamed:
      return fault.call == call;
    case Scope::kAny:
      return true;
    case Scope::kWrite:
      return is_write(call);
  }
  return false;
}

Status FaultPlan::before(Call call, std::string_view) {
  std::unique_lock lock(mutex_);
  ++calls_;
  ++waiting_;
  released_.wait(lock,
                 [&] { return std::ranges::find(hanging_calls_, call) == hanging_calls_.end(); });
  --waiting_;
  if (lost_in_) {
    if (*lost_in_ > 1) {
      --*lost_in_;
    } else {
      return make_error(ErrorKind::kDeviceLost,
                        std::string(to_string(call)) + ": GPU is lost (injected)");
    }
  }
  std::optional<Error> error;
  for (Fault& fault : faults_) {
    if (!matches(fault, call)) continue;
    if (fault.countdown == 0) {
      error = fault.error;
    } else if (--fault.countdown == 0) {
      error = fault.error;
      fault.countdown = -1;  // spent
    }
  }
  std::erase_if(faults_, [](const Fault& fault) { return fault.countdown < 0; });
  if (error) return std::unexpected(std::move(*error));
  return {};
}

}  // namespace gpoeo::gpu::testing
