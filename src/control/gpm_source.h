// SPDX-License-Identifier: Apache-2.0
// Counters from outside the job: GPM, through the samplers of the job's GPUs.
#pragma once

#include <memory>
#include <vector>

#include "control/counter_source.h"
#include "control/gpu_channel.h"

namespace gpoeo::control {

// Mean over the GPUs that answer. `gpus` must outlive it.
class GpmSource final : public CounterSource {
 public:
  explicit GpmSource(std::vector<GpuChannel*> gpus) : gpus_(std::move(gpus)) {}

  bool free_of_cost() const override { return true; }
  Status begin(Instant now, Seconds iteration) override;
  std::optional<Result<CounterReading>> poll(Instant now, std::span<const Instant> ends,
                                             bool enough) override;
  void cancel() override;

 private:
  std::vector<GpuChannel*> gpus_;
};

}  // namespace gpoeo::control
