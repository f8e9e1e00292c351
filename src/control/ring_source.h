// SPDX-License-Identifier: Apache-2.0
// Counters that a twin's job program tells in the place of CUPTI, asked through its progress ring.
#pragma once

#include <cstdint>

#include "control/counter_source.h"
#include "control/progress.h"

namespace gpoeo::control {

class RingSource final : public CounterSource {
 public:
  // `progress` must outlive it.
  explicit RingSource(const RingProgress& progress) : progress_(progress) {}

  // As CUPTI's, which it stands for.
  bool free_of_cost() const override { return false; }
  Status begin(Instant now, Seconds iteration) override;
  std::optional<Result<CounterReading>> poll(Instant now, std::span<const Instant> ends,
                                             bool enough) override;
  void cancel() override;

 private:
  // The ring that was asked; nullptr when another process is followed by now.
  const wire::RingReader* ring() const;

  const RingProgress& progress_;
  std::uint64_t window_ = 0;  // the newest that was asked for
  std::int64_t asked_pid_ = 0;
  bool open_ = false;
  Seconds iteration_{};
  Instant give_up_at_{};
};

}  // namespace gpoeo::control
