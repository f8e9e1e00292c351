// SPDX-License-Identifier: Apache-2.0
// Smooth response curves of one workload: time relative to the default setting, power and counters
// at any clock (or power limit) that its table covers. This is "the truth" of the twin and of
// `bench`, and what the predictor learns. Method and residuals: docs/response-tables.md.
//
// A workload has a Line for each (memory clock, power limit) that was swept over SM clocks, or,
// where clocks were left to the driver, one line over power limits. Along a line curves are smooth,
// positive and interpolated by a monotone cubic; relative time never rises with the clock. Between
// lines nothing is interpolated. At the default setting relative time is exactly 1.
//
// Thread rule: immutable once fitted. Errors: kInvalid, naming the workload.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "response/monotone_cubic.h"
#include "response/response_table.h"

namespace gpoeo::response {

// How well a curve follows the points it was fitted to. Residuals are |raw / curve - 1|, or for
// fractions |raw - curve|.
struct Residuals {
  int points = 0;
  double median = 0;
  double worst = 0;
  double worst_at = 0;  // on the line's axis
  double noise = 0;     // estimated standard deviation of the measurement
  double lambda = 0;    // smoothing; 0 = interpolated
  int outliers = 0;     // points with less than half weight
};

// One quantity along one line.
class Curve {
 public:
  enum class Scale { kLog, kLinear };  // how the values were fitted
  // `fit` is in the scale's units; answers are held to [0, upper].
  Curve(MonotoneCubic fit, Scale scale, double upper, const Residuals& residuals);

  // Outside [lowest, highest] the end's value.
  double at(double x) const;
  double lowest() const { return fit_.x().front(); }
  double highest() const { return fit_.x().back(); }
  const Residuals& residuals() const { return residuals_; }

 private:
  MonotoneCubic fit_;
  Scale scale_;
  double upper_;
  Residuals residuals_;
};

struct Line {
  enum class Axis { kSmClock, kPowerLimit };
  Axis axis = Axis::kSmClock;
  bool driver_clocks = false;             // the driver chose the clocks; the axis is the limit
  std::optional<double> mem_mhz{};        // absent: the table does not say
  std::optional<double> power_limit_w{};  // of an SM-clock line; absent: the card's own
  std::vector<double> x;  // measured clocks (MHz) or limits (W) with a time, ascending
  Curve relative_time;
  std::optional<Curve> power_w{};
  std::array<std::optional<Curve>, kCounterCount> counters{};
};

// What a workload does at one setting.
struct Response {
  double relative_time = 1;                 // over the default setting's
  std::optional<double> power_w{};          // mean
  std::optional<double> relative_power{};   // over the default setting's
  std::optional<double> relative_energy{};  // relative_time * relative_power
  CounterValues counters{};
  // What the answer is for: the nearest measured line, and on it the nearest covered point.
  Setting used{};
  bool clamped = false;       // the SM clock or limit asked for is outside of what was measured
  bool other_memory = false;  // ... the memory clock asked for was not measured
  bool other_limit = false;   // ... the power limit asked for was not measured
};

class WorkloadCurves {
 public:
  // Fits every line that has times. kInvalid when the default has no time or power, or when a line
  // has more than 4096 points or there are more than 256 lines.
  static Result<WorkloadCurves> fit(const Workload& workload);

  const std::string& name() const { return name_; }
  // Smoothed; absolute time is default_time_s() * relative_time.
  double default_time_s() const { return default_time_s_; }
  double default_power_w() const { return default_power_w_; }
  const Setting& default_setting() const { return default_setting_; }
  // The default's line first, if it is on one: a default row at the driver's clocks and the card's
  // own limit stands for itself, is not smoothed, and there may be no line at all.
  const std::vector<Line>& lines() const { return lines_; }

  // Whatever `setting` leaves out is the default's. A setting that was not measured is answered
  // from the nearest one, and the answer says so: never extrapolated. A setting's limit is ignored
  // by a table without limits, and a clock by one without clocks.
  Response at(const Setting& setting) const;

 private:
  WorkloadCurves() = default;
  const Line* nearest_line(const Setting& setting) const;
  Response default_response() const;

  std::string name_;
  Setting default_setting_;
  double default_time_s_ = 0;
  double default_power_w_ = 0;
  CounterValues default_counters_;  // as measured
  bool default_on_line_ = false;
  std::vector<Line> lines_;
};

// Every workload of a table, in its order: what a predictor trains on.
Result<std::vector<WorkloadCurves>> fit_all(const ResponseTable& table);

}  // namespace gpoeo::response
