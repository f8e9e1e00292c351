// SPDX-License-Identifier: Apache-2.0
// Any text as a launch log, and whatever parses through LaunchRepeats.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "iteration/launch_repeats.h"
#include "iteration/log_csv.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpoeo::iteration;
  const auto rows =
      parse_launch_csv(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.csv");
  if (!rows) {
    GPOEO_CHECK(rows.error().text.starts_with("fuzz.csv:"));
    return 0;
  }
  LaunchRepeats repeats;
  for (const LaunchRow& row : *rows) repeats.push(row.t_ns, row.function_id, row.stream);
  repeats.finish();
  GPOEO_CHECK(repeats.launches() == rows->size());
  GPOEO_CHECK(repeats.iterations() <= rows->size());
  return 0;
}
