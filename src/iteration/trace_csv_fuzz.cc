// SPDX-License-Identifier: Apache-2.0
// Any text as a power trace, and whatever parses through the estimators.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "iteration/log_csv.h"
#include "iteration/period.h"
#include "iteration/slowdown.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpoeo::iteration;
  const auto trace =
      parse_trace_csv(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.csv");
  if (!trace) {
    GPOEO_CHECK(trace.error().text.starts_with("fuzz.csv:"));
    return 0;
  }
  const PeriodEstimate estimate = estimate_period(*trace);
  GPOEO_CHECK(estimate.period_s.has_value() == estimate.reason.empty());
  GPOEO_CHECK(estimate.confidence >= 0 && estimate.confidence <= 1);
  const SlowdownEstimate slowdown = compare_traces(*trace, *trace);
  GPOEO_CHECK(slowdown.time_ratio.has_value() == slowdown.reason.empty());
  GPOEO_CHECK(!slowdown.time_ratio || slowdown.low <= slowdown.high);
  return 0;
}
