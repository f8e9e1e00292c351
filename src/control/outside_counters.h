// SPDX-License-Identifier: Apache-2.0
// Counters by CUPTI, from a process of our own beside the job (apps/counters): PM sampling is of
// the whole card. Nothing happens in the job's process.
#pragma once

#include <filesystem>
#include <list>
#include <string>
#include <vector>

#include "control/counter_source.h"
#include "control/progress.h"
#include "control/tool_process.h"

namespace gpoeo::control {

struct OutsideCounterOptions {
  std::filesystem::path program;       // gpoeo-counters
  std::filesystem::path metrics_file;  // data/counters/cupti.txt
  std::vector<std::string> gpus;       // UUIDs
};

class OutsideCounters final : public CounterSource {
 public:
  // `progress` must outlive it: the libcupti that the job itself has loaded is tried first, if it
  // can be trusted (apps/counters/loaded_library.h).
  OutsideCounters(const RingProgress& progress, OutsideCounterOptions options)
      : progress_(progress), options_(std::move(options)) {}

  // It takes some CPU time of another core for each window.
  bool free_of_cost() const override { return false; }
  Status begin(Instant now, Seconds iteration) override;
  std::optional<Result<CounterReading>> poll(Instant now, std::span<const Instant> ends,
                                             bool enough) override;
  void cancel() override;

 private:
  const RingProgress& progress_;
  OutsideCounterOptions options_;
  std::list<ToolProcess> running_;  // one for each GPU
  std::list<ToolProcess> ending_;   // given up, and asked to end
  std::vector<CounterReading> done_;
  Instant begin_{}, end_{};  // of the first and the last sample so far
  std::size_t passes_ = 0;
  Seconds iteration_{};
};

}  // namespace gpoeo::control
