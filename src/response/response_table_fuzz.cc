// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: no bytes may crash the table reader or the fits made from what it accepts.
#include <cstddef>
#include <cstdint>

#include "response/response_curve.h"
#include "response/response_table.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto table = gpoeo::response::parse_response_table(text, "fuzz");
  if (!table) return 0;
  for (const auto& workload : table->workloads) {
    const auto curves = gpoeo::response::WorkloadCurves::fit(workload);
    if (!curves) continue;
    for (const auto& point : workload.points) (void)curves->at(point.setting);
  }
  return 0;
}
