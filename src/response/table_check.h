// SPDX-License-Identifier: Apache-2.0
// What was done to a measured table on its way to smooth curves, in one line for each workload and
// memory clock (or row of limits): repeats and their scatter, points taken for outliers and where
// they lie, times that rose with the clock and were pooled, how far the default point lies from its
// curve, what is missing. Thread rule: pure.
#pragma once

#include <string>
#include <vector>

#include "response/response_curve.h"
#include "response/response_table.h"

namespace gpoeo::response {

// A point that its curve does not follow.
struct OffPoint {
  double at = 0;   // clock (MHz) or limit (W)
  double off = 0;  // measured over curve, minus 1
};

struct LineCheck {
  std::string workload;
  std::optional<double> mem_mhz{}, power_limit_w{};
  Line::Axis axis = Line::Axis::kSmClock;
  int points = 0, rows = 0;
  int left_out = 0;  // repeats that were not averaged
  int without_time = 0, without_power = 0;
  // Scatter of repeats, relative: the median and the worst over the settings that were repeated.
  int repeated = 0;
  std::optional<double> median_scatter{}, worst_scatter{};
  Residuals time, power;
  // Beyond 4.685 standard deviations of the measurement, where Tukey's biweight is 0.
  std::vector<OffPoint> time_outliers{}, power_outliers{};
  // Neighbours whose time rises with the clock by more than two standard deviations of the
  // difference (at least 0.3 %): pooled, since no work gets slower by a higher clock.
  int rising = 0;
  double worst_rise = 0, worst_rise_at = 0;
  std::optional<double> default_off{};  // measured over curve, minus 1; only on the default's line
  int counters = 0;                     // columns with values
};

std::vector<LineCheck> check_workload(const Workload& workload, const WorkloadCurves& curves);
// One line, and the head above such lines.
std::string describe(const LineCheck& check);
std::string describe_head();

}  // namespace gpoeo::response
