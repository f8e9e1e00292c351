// SPDX-License-Identifier: Apache-2.0
// The truth, for whoever judges (bench, `gpoeo twin show`, tests): never for a policy.
#pragma once

#include <vector>

#include "twin/card_store.h"

namespace gpoeo::twin {

struct CardTruth {
  Instant time;
  Joules energy;  // since the card came up
  Watts power;    // at this moment
  Celsius temperature;
  Hertz sm_clock, memory_clock;
  std::uint64_t clock_writes = 0;
  std::vector<JobTruth>
      jobs;  // running and done, then the newest that left (at most 8), by generation
};

Result<CardTruth> truth(CardStore& store, unsigned card);

}  // namespace gpoeo::twin
