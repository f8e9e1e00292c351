// SPDX-License-Identifier: Apache-2.0
#include "response/response_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/file.h"
#include "response/table_rows.h"

namespace gpoeo::response {
namespace {

constexpr std::array<std::string_view, kCounterCount> kCounterNames = {
    "gr_active",   "sm_active",   "sm_occupancy", "tensor_active",       "dram_active",
    "fp64_active", "fp32_active", "fp16_active",  "pcie_tx_bytes_per_s", "pcie_rx_bytes_per_s"};

// Orders settings; an absent clock is below any, an absent power limit (the card's own) above any.
double clock_rank(const std::optional<double>& mhz) { return mhz.value_or(0.0); }
double limit_rank(const std::optional<double>& w) {
  return w.value_or(std::numeric_limits<double>::infinity());
}

auto order_in_workload(const Point& p) {
  const Setting& s = p.setting;
  return std::tuple(!s.driver_clocks, -clock_rank(s.mem_mhz), -limit_rank(s.power_limit_w),
                    -clock_rank(s.sm_mhz));
}

auto rank_as_default(const Point& p) {
  const Setting& s = p.setting;
  return std::tuple(s.driver_clocks, clock_rank(s.mem_mhz), clock_rank(s.sm_mhz),
                    limit_rank(s.power_limit_w));
}

Status finish(Workload& workload, std::string_view source) {
  std::ranges::sort(workload.points, {}, order_in_workload);
  const auto best = std::ranges::max_element(workload.points, {}, rank_as_default);
  workload.default_index = static_cast<std::size_t>(best - workload.points.begin());
  if (best->time_s && best->power_w) return {};
  return make_error(
      ErrorKind::kInvalid,
      fmt::format(
          "{}: workload '{}': the default row ({}) has no {}; everything is relative to it, "
          "so measure it, or remove the workload",
          source, printable(workload.name), to_string(best->setting),
          best->time_s ? "power_w" : "time_s"));
}

}  // namespace

std::string_view to_string(Counter counter) {
  GPOEO_CHECK(counter < Counter::kCount);
  return kCounterNames[static_cast<std::size_t>(counter)];
}

std::string to_string(const Setting& setting) {
  std::string text;
  const auto add = [&text](const std::string& part) {
    if (!text.empty()) text += ", ";
    text += part;
  };
  if (setting.driver_clocks) add("the driver's own clocks");
  if (setting.sm_mhz) add(fmt::format("{:g} MHz SM", *setting.sm_mhz));
  if (setting.mem_mhz) add(fmt::format("{:g} MHz memory", *setting.mem_mhz));
  if (setting.power_limit_w) add(fmt::format("{:g} W limit", *setting.power_limit_w));
  return text.empty() ? "unknown setting" : text;
}

std::optional<double> Point::energy_j() const {
  if (!time_s || !power_w) return std::nullopt;
  return *time_s * *power_w;
}

Result<const Workload*> ResponseTable::find(std::string_view workload) const {
  for (const Workload& w : workloads) {
    if (w.name == workload) return &w;
  }
  std::string known;
  for (const Workload& w : workloads) {
    if (known.size() > 400) {
      known += ", ...";
      break;
    }
    known += (known.empty() ? "" : ", ") + printable(w.name);
  }
  return make_error(ErrorKind::kNotFound, fmt::format("{}: no workload '{}'; it has: {}", source,
                                                      printable(workload), known));
}

Result<ResponseTable> parse_response_table(std::string_view text, std::string_view source) {
  ResponseTable table{.source = std::string(source), .comments = {}, .workloads = {}};
  GPOEO_TRY(table.workloads, collect_rows(text, source, table.comments));
  for (Workload& workload : table.workloads) GPOEO_TRY_STATUS(finish(workload, source));
  return table;
}

Result<ResponseTable> read_response_table(const std::filesystem::path& path) {
  GPOEO_TRY(const std::string text, read_file(path));
  return parse_response_table(text, path.string());
}

}  // namespace gpoeo::response
