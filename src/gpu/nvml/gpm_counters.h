// SPDX-License-Identifier: Apache-2.0
// Activity counters through GPM: the difference of two samples of one GPU. Internal to this module.
//
// The driver moves GPM's values only each 100 ms (seen on an H200, driver 580); two samples of one
// step give zeros or NaN. So a window of less than one period is refused as kBusy and goes on
// growing, and a NaN is an absent value, never a number.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "gpu/nvml/session.h"
#include "gpu/types.h"

namespace gpoeo::nvml {

class GpmCounters {
 public:
  static constexpr Duration kPeriod = std::chrono::milliseconds(100);

  GpmCounters(std::shared_ptr<Session> session, abi::DeviceHandle handle, std::string label)
      : session_(std::move(session)), handle_(handle), label_(std::move(label)) {}

  // kYes, kNo, or kUnknown when the question itself failed.
  static gpu::Support support(const Session& session, abi::DeviceHandle handle);
  // As gpu::Device::counters().
  Result<gpu::Counters> read();

 private:
  struct Free {
    abi::Return (*function)(abi::GpmSample);
    void operator()(abi::GpmSampleRecord* sample) const { function(sample); }
  };
  using Sample = std::unique_ptr<abi::GpmSampleRecord, Free>;

  Result<Sample> take();
  Result<gpu::Counters> difference(const Sample& later, Duration window) const;

  std::shared_ptr<Session> session_;  // as NvmlDevice's
  abi::DeviceHandle handle_;
  std::string label_;
  std::optional<Sample> start_;
  Instant start_time_;
};

}  // namespace gpoeo::nvml
