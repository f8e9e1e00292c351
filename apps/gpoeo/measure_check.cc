// SPDX-License-Identifier: Apache-2.0
// `gpoeo measure --check FILE`: reads a response table as training and bench do, and says in one
// line a workload and memory clock what was averaged, left out, pooled or missing.
#include <fmt/format.h>

#include "measure.h"
#include "response/table_check.h"
#include "verb.h"

namespace gpoeo::app {

int check_table(const std::string& file) {
  const auto table = response::read_response_table(file);
  if (!table) return fail(table.error(), kExitUsage);
  const auto curves = response::fit_all(*table);
  if (!curves) return fail(curves.error(), kExitUsage);
  for (const std::string& comment : table->comments) fmt::print("# {}\n", comment);
  fmt::print("{}\n", response::describe_head());
  std::size_t lines = 0, outliers = 0, pooled = 0, left_out = 0;
  for (std::size_t i = 0; i < curves->size(); ++i) {
    for (const auto& check : response::check_workload(table->workloads[i], (*curves)[i])) {
      fmt::print("{}\n", response::describe(check));
      ++lines;
      outliers += check.time_outliers.size() + check.power_outliers.size();
      pooled += static_cast<std::size_t>(check.rising);
      left_out += static_cast<std::size_t>(check.left_out);
    }
  }
  fmt::print(
      "{}: {} workloads, {} lines; {} points taken for outliers, {} rising times pooled, {} repeats "
      "left out\n",
      file, table->workloads.size(), lines, outliers, pooled, left_out);
  return kExitOk;
}

}  // namespace gpoeo::app
