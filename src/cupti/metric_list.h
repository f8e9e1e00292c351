// SPDX-License-Identifier: Apache-2.0
// Reads the list of metrics of each chip (data/counters/cupti.txt; format: docs/counters.md). No
// allocation: names stay where the text is, which is changed in place.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpoeo::cupti {

inline constexpr std::size_t kMostPasses = 8;
inline constexpr std::size_t kMostPassMetrics = 8;

struct MetricPass {
  std::size_t count = 0;
  const char* metrics[kMostPassMetrics] = {};
  std::uint32_t words[kMostPassMetrics] = {};  // ActivityWord::number
};

struct MetricList {
  std::size_t count = 0;
  MetricPass passes[kMostPasses];
};

// `text` ends with a NUL and is written to. Lines that make no sense are left out; count 0: nothing
// for this chip.
MetricList parse_metrics(char* text, const char* chip);

}  // namespace gpoeo::cupti
