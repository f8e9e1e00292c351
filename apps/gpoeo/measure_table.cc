// SPDX-License-Identifier: Apache-2.0
#include "measure_table.h"

#include <fmt/format.h>

#include "control/sweep_drift.h"
#include "response/counter_values.h"
#include "response/table_writer.h"

namespace gpoeo::app {
namespace {

std::string describe(const char* what, const control::Drift& drift) {
  return fmt::format(
      "Drift of {}: default windows spread by {:.2f} %, {:.2f} % of it noise; {:.0f} % of the "
      "change was taken out",
      what, 100 * drift.spread, 100 * drift.noise, 100 * drift.weight);
}

std::string head(const SweepTable& about, const control::Undrifted& undrifted,
                 const std::vector<control::SweepPoint>& points) {
  std::string text;
  if (!about.why_partial.empty())
    text += fmt::format("PARTIAL: {} of {} windows: {}\n", points.size(), about.windows,
                        about.why_partial);
  text += fmt::format(
      "{} {}\n",
      about.simulated ? "SIMULATED, on the twin of" : "Measured on real hardware:", about.gpu);
  text += fmt::format("Made by: {}\n", about.made_by);
  if (about.gpus > 1) text += fmt::format("Power is the mean of {} GPUs.\n", about.gpus);
  std::string missed;
  for (const auto& point : points)
    if (!point.observation.held)
      missed += fmt::format(" {},", policy::to_string(point.observation.setting));
  if (!missed.empty()) text += fmt::format("Could not hold:{} as measured\n", missed);
  text += describe("time", undrifted.time) + "\n";
  text += describe("power", undrifted.power);
  return response::comment_lines(text);
}

// The SM clock that ran where only the memory clock was bound: the mean at default clocks, last
// time.
std::optional<double> default_sm_mhz(const std::vector<control::SweepPoint>& points) {
  std::optional<double> mhz;
  for (const auto& point : points)
    if (point.observation.setting.is_default() && point.observation.sm_clock)
      mhz = to_mhz(*point.observation.sm_clock);
  return mhz;
}

}  // namespace

std::string to_table(const SweepTable& about, const std::vector<control::SweepPoint>& points) {
  std::vector<policy::Observation> observations;
  for (const auto& point : points) observations.push_back(point.observation);
  const control::Undrifted undrifted = control::take_out_drift(observations);
  const auto standard_sm_mhz = default_sm_mhz(points);
  std::string text = head(about, undrifted, points) + response::header_line();
  for (std::size_t i = 0; i < points.size(); ++i) {
    const policy::ClockSetting& asked = points[i].observation.setting;
    response::TableRow row;
    row.setting.driver_clocks = asked.is_default();
    if (!asked.is_default()) {
      row.setting.sm_mhz = asked.sm ? std::optional(to_mhz(*asked.sm)) : standard_sm_mhz;
      if (asked.memory) row.setting.mem_mhz = to_mhz(*asked.memory);
      if (!asked.memory && !about.memory_mhz.empty())
        row.setting.mem_mhz = about.memory_mhz.front();
    }
    row.setting.power_limit_w = about.power_limit_w;
    row.time_s = undrifted.rows[i].time_s;
    row.power_w = undrifted.rows[i].power_w / about.gpus;
    if (points[i].counters) row.counters = response::counter_values(*points[i].counters);
    text += response::row_line(about.workload, row);
  }
  return text;
}

}  // namespace gpoeo::app
