// SPDX-License-Identifier: Apache-2.0
// A device that writes down what it was asked, in order.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gpu/testing/decorated_device.h"

namespace gpoeo::gpu::testing {

// One line a call: "lock_sm_clocks 210 1200", with " -> no permission" (the error's kind) when it
// failed. Thread rule: any thread. Several devices may share a log.
class CallLog final : public CallHook {
 public:
  std::vector<std::string> lines() const;
  // Only those that change the card.
  std::vector<std::string> writes() const;
  void clear();

  Status before(Call, std::string_view) override { return {}; }
  void after(Call call, std::string_view arguments, const Error* error) override;

 private:
  struct Line {
    std::string text;
    bool write;
  };
  mutable std::mutex mutex_;
  std::vector<Line> lines_;
};

class RecordingDevice final : public DecoratedDevice {
 public:
  RecordingDevice(std::unique_ptr<Device> inner, CallLog& log)
      : DecoratedDevice(std::move(inner), log) {}
};

}  // namespace gpoeo::gpu::testing
