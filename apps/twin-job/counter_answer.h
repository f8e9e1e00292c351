// SPDX-License-Identifier: Apache-2.0
// Answers requests for counters in the progress ring, as the injected library does with CUPTI: here
// with the simulated card's true activities and a sensor's noise.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "twin/card_front.h"
#include "wire/ring_mapping.h"

namespace gpoeo::twin_job {

// Thread rule: the job's thread.
class CounterAnswer {
 public:
  // `seed` makes the noise. Borrows both.
  CounterAnswer(twin::CardFront card, const wire::RingMapping& ring, std::uint64_t seed)
      : card_(card), ring_(&ring), seed_(seed) {}

  // Each few milliseconds: begins a window that was asked for, ends one that is over.
  Status poll();

 private:
  struct Window {
    std::uint64_t number;
    twin::GpmSnapshot begin;
  };
  void publish(const twin::GpmSnapshot& end) const;

  twin::CardFront card_;
  const wire::RingMapping* ring_;
  std::uint64_t seed_;
  std::uint64_t newest_ = 0;  // window taken up
  std::optional<Window> window_;
};

}  // namespace gpoeo::twin_job
