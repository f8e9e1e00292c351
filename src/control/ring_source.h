// SPDX-License-Identifier: Apache-2.0
// Counters from inside the job's process: the injected library (CUPTI), or a twin's job program in
// its place, asked through the progress ring of the process that is followed.
#pragma once

#include <cstdint>
#include <filesystem>

#include "control/counter_source.h"
#include "control/progress.h"

namespace gpoeo::control {

struct RingSourceOptions {
  // Which metric each word is on which chip (data/counters/cupti.txt); empty: the library has none
  // to read and says so.
  std::filesystem::path metrics_file{};
  // Where the process looks for it: its ring's folder.
  std::filesystem::path ring_folder{};
};

class RingSource final : public CounterSource {
 public:
  // `progress` must outlive it.
  RingSource(const RingProgress& progress, RingSourceOptions options)
      : progress_(progress), options_(std::move(options)) {}

  // A window takes a thread of the job's for its length, and slows launches: seen on an H200, not
  // at all where the GPU is busy, by about a tenth where the GPU waits for the host
  // (docs/counters.md).
  bool free_of_cost() const override { return false; }
  Status begin(Instant now, Seconds iteration) override;
  std::optional<Result<CounterReading>> poll(Instant now, std::span<const Instant> ends,
                                             bool enough) override;
  void cancel() override;

 private:
  // The ring that was asked; nullptr when another process is followed by now.
  const wire::RingReader* ring() const;

  const RingProgress& progress_;
  RingSourceOptions options_;
  std::uint64_t window_ = 0;  // the newest that was asked for
  std::int64_t asked_pid_ = 0;
  bool open_ = false;
  Seconds iteration_{};
  Instant give_up_at_{};
};

}  // namespace gpoeo::control
