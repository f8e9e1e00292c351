// SPDX-License-Identifier: Apache-2.0
#include "bench/table_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "twin/device_spec.h"

namespace gpoeo::bench {
namespace {

template <std::size_t N>
void set_text(std::array<char, N>& to, std::string_view text) {
  to.fill('\0');
  std::memcpy(to.data(), text.data(), std::min(text.size(), N - 1));
}

}  // namespace

Result<twin::DeviceModel> device_for_table(const response::ResponseTable& table,
                                           const std::string& name) {
  std::set<int> sm, memory;
  double highest_w = 0, lowest_w = 1e9;
  for (const auto& workload : table.workloads) {
    for (const auto& point : workload.points) {
      if (point.setting.sm_mhz) sm.insert(static_cast<int>(std::lround(*point.setting.sm_mhz)));
      if (point.setting.mem_mhz) {
        memory.insert(static_cast<int>(std::lround(*point.setting.mem_mhz)));
      }
      if (point.power_w) {
        highest_w = std::max(highest_w, *point.power_w);
        lowest_w = std::min(lowest_w, *point.power_w);
      }
    }
  }
  if (sm.empty()) {
    return make_error(ErrorKind::kInvalid,
                      fmt::format("{} has no SM clocks to choose from", table.source));
  }
  if (sm.size() > twin::kMaxSmClocks || memory.size() > twin::kMaxMemoryClocks ||
      sm.size() * std::max<std::size_t>(memory.size(), 1) > twin::kMaxClockPairs) {
    return make_error(
        ErrorKind::kInvalid,
        fmt::format("{} has {} SM and {} memory clocks; at most {} and {} fit", table.source,
                    sm.size(), memory.size(), twin::kMaxSmClocks, twin::kMaxMemoryClocks));
  }
  GPOEO_TRY(twin::DeviceModel d, twin::find_device("a100"));
  set_text(d.name, "card of " + name);
  set_text(d.key, name);
  d.sm_clock_count = static_cast<int>(sm.size());
  std::ranges::copy(sm, d.sm_mhz.begin());
  d.memory_clock_count = 1;
  if (!memory.empty()) {
    d.memory_clock_count = static_cast<int>(memory.size());
    std::copy(memory.rbegin(), memory.rend(), d.memory_mhz.begin());
  }
  for (std::size_t m = 0; m < static_cast<std::size_t>(d.memory_clock_count); ++m) {
    d.sm_first[m] = 0;
    d.sm_number[m] = d.sm_clock_count;
    d.memory_idle_saving_w[m] = 0;
  }
  d.default_sm = d.sm_clock_count - 1;
  d.idle_sm = 0;
  d.idle_memory = d.memory_clock_count - 1;
  d.voltage_floor_mhz = 0.64 * d.sm_mhz[static_cast<std::size_t>(d.default_sm)];
  d.idle_w = 0.6 * lowest_w;
  d.active_w = 0.1 * lowest_w;
  d.limit_default_w = d.limit_max_w = std::ceil(1.3 * highest_w);
  d.limit_min_w = std::floor(std::min(0.5 * d.limit_max_w, lowest_w));
  // The temperature of a card at its limit is about the same on every card.
  d.thermal_k_per_w = 50.0 / d.limit_default_w;
  d.leakage_w_per_k = 0.0006 * d.limit_default_w;
  return d;
}

void drop_unmeasured_clocks(twin::DeviceModel& d, const response::ResponseTable& table) {
  double lowest = 1e9;
  for (const auto& workload : table.workloads) {
    for (const auto& point : workload.points) {
      if (point.setting.sm_mhz) lowest = std::min(lowest, *point.setting.sm_mhz);
    }
  }
  int dropped = 0;
  while (dropped < d.default_sm && d.sm_mhz[static_cast<std::size_t>(dropped)] < lowest) ++dropped;
  std::shift_left(d.sm_mhz.begin(), d.sm_mhz.begin() + d.sm_clock_count, dropped);
  d.sm_clock_count -= dropped;
  d.default_sm -= dropped;
  d.idle_sm = std::max(0, d.idle_sm - dropped);
  for (std::size_t m = 0; m < static_cast<std::size_t>(d.memory_clock_count); ++m) {
    const int end = d.sm_first[m] + d.sm_number[m] - dropped;
    d.sm_first[m] = std::max(0, d.sm_first[m] - dropped);
    d.sm_number[m] = end - d.sm_first[m];
  }
}

}  // namespace gpoeo::bench
