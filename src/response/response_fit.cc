// SPDX-License-Identifier: Apache-2.0
// From measured points to the curves of response_curve.h.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>

#include "response/response_curve.h"
#include "response/robust.h"
#include "response/smooth.h"

namespace gpoeo::response {
namespace {

constexpr std::size_t kMaxPointsPerLine = 4096;
constexpr std::size_t kMaxLines = 256;
constexpr double kNoUpperBound = std::numeric_limits<double>::infinity();

// The points of one line that have the quantity, ascending.
struct Series {
  std::vector<double> x;
  std::vector<double> y;
};

using Quantity = std::function<std::optional<double>(const Point&)>;

double position(const Point& p, Line::Axis axis) {
  return axis == Line::Axis::kSmClock ? *p.setting.sm_mhz : *p.setting.power_limit_w;
}

Series series_of(std::span<const Point* const> points, Line::Axis axis, const Quantity& quantity) {
  Series s;
  for (const Point* p : points) {
    const auto value = quantity(*p);
    if (!value) continue;
    s.x.push_back(position(*p, axis));
    s.y.push_back(*value);
  }
  return s;
}

// A series smoothed in its scale's units, before it is normalised.
struct Fit {
  std::vector<double> x;
  std::vector<double> z;
  Curve::Scale scale = Curve::Scale::kLog;
  Residuals residuals;

  Curve curve(double shift, double upper) const {
    std::vector<double> shifted = z;
    for (double& v : shifted) v -= shift;
    return Curve(MonotoneCubic(x, std::move(shifted)), scale, upper, residuals);
  }
};

// Positive values are fitted as logarithms, so that noise is relative and the curve positive; a
// counter that reaches 0 is fitted as it is.
Fit fit_series(const Series& s, Shape shape) {
  Fit fit{.x = s.x, .z = {}, .scale = Curve::Scale::kLog, .residuals = {}};
  const bool logarithmic = std::ranges::all_of(s.y, [](double v) { return v > 0; });
  if (!logarithmic) fit.scale = Curve::Scale::kLinear;
  SmoothOptions options{.shape = shape};
  if (!logarithmic) options.least_noise *= std::max(1e-6, std::ranges::max(s.y));
  std::vector<double> y = s.y;
  if (logarithmic) std::ranges::transform(y, y.begin(), [](double v) { return std::log(v); });
  // Over the logarithm of clock or limit the response of anything bound by it is a straight line.
  std::vector<double> log_x = s.x;
  std::ranges::transform(log_x, log_x.begin(), [](double v) { return std::log(v); });
  const Smoothed smoothed = smooth(log_x, y, options);

  Residuals& r = fit.residuals;
  r.points = static_cast<int>(y.size());
  r.noise = smoothed.noise;
  r.lambda = smoothed.lambda;
  std::vector<double> sizes;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double difference = y[i] - smoothed.z[i];
    sizes.push_back(std::abs(logarithmic ? std::expm1(difference) : difference));
    if (sizes.back() >= r.worst) {
      r.worst = sizes.back();
      r.worst_at = s.x[i];
    }
    if (smoothed.weights[i] < 0.5) ++r.outliers;
  }
  r.median = median(std::move(sizes));
  fit.z = smoothed.z;
  return fit;
}

// Points that one line holds together.
struct Group {
  Line::Axis axis = Line::Axis::kSmClock;
  bool driver_clocks = false;
  std::optional<double> mem_mhz;
  std::optional<double> power_limit_w;
  std::vector<const Point*> points;  // ascending on the axis
  const Point* default_point = nullptr;

  bool takes(const Group& o) const {
    return axis == o.axis && driver_clocks == o.driver_clocks && mem_mhz == o.mem_mhz &&
           power_limit_w == o.power_limit_w;
  }
};

// nullopt for a point that stands for itself: the driver's clocks at the card's own limit.
std::optional<Group> group_of(const Point& p) {
  const Setting& s = p.setting;
  Group g;
  g.driver_clocks = s.driver_clocks;
  g.mem_mhz = s.mem_mhz;
  if (s.sm_mhz) {
    g.power_limit_w = s.power_limit_w;
    return g;
  }
  g.axis = Line::Axis::kPowerLimit;
  if (!s.power_limit_w) return std::nullopt;
  return g;
}

// In the table's order, but the default's first. nullopt for more than kMaxLines.
std::optional<std::vector<Group>> group_points(const Workload& workload) {
  std::vector<Group> groups;
  for (const Point& p : workload.points) {
    auto group = group_of(p);
    if (!group) continue;
    auto into = std::ranges::find_if(groups, [&](const Group& g) { return g.takes(*group); });
    if (into == groups.end()) {
      if (groups.size() == kMaxLines) return std::nullopt;
      into = groups.insert(groups.end(), std::move(*group));
    }
    into->points.push_back(&p);
    if (&p == &workload.default_point()) into->default_point = &p;
  }
  for (Group& g : groups) {
    std::ranges::sort(g.points, {}, [&g](const Point* p) { return position(*p, g.axis); });
  }
  std::ranges::stable_partition(groups, [](const Group& g) { return g.default_point != nullptr; });
  return groups;
}

// The log of the default's time that everything on all lines is divided by.
double log_at(const Fit& fit, double x) { return MonotoneCubic(fit.x, fit.z)(x); }

Line make_line(const Group& group, const Fit& time, double log_default_time) {
  Line line{.axis = group.axis,
            .driver_clocks = group.driver_clocks,
            .mem_mhz = group.mem_mhz,
            .power_limit_w = group.power_limit_w,
            .x = time.x,
            .relative_time = time.curve(log_default_time, kNoUpperBound),
            .power_w = std::nullopt,
            .counters = {}};
  const auto free_curve = [&group](const Quantity& quantity, double upper) -> std::optional<Curve> {
    const Series series = series_of(group.points, group.axis, quantity);
    if (series.x.empty()) return std::nullopt;
    return fit_series(series, Shape::kFree).curve(0, upper);
  };
  line.power_w = free_curve([](const Point& p) { return p.power_w; }, kNoUpperBound);
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    const auto counter = static_cast<Counter>(i);
    line.counters[i] = free_curve([counter](const Point& p) { return p.counters[counter]; },
                                  is_fraction(counter) ? 1.0 : kNoUpperBound);
  }
  return line;
}

}  // namespace

Result<WorkloadCurves> WorkloadCurves::fit(const Workload& workload) {
  const auto refuse = [&workload](std::string_view why) {
    return make_error(ErrorKind::kInvalid, fmt::format("workload '{}': {}", workload.name, why));
  };
  if (workload.default_index >= workload.points.size()) return refuse("no default point");
  const Point& normal = workload.default_point();
  if (!normal.time_s || !normal.power_w) return refuse("no time or power at the default setting");

  WorkloadCurves curves;
  curves.name_ = workload.name;
  curves.default_setting_ = normal.setting;
  curves.default_time_s_ = *normal.time_s;
  curves.default_power_w_ = *normal.power_w;
  curves.default_counters_ = normal.counters;
  double log_default_time = std::log(*normal.time_s);
  const auto groups = group_points(workload);
  if (!groups) return refuse(fmt::format("more than {} memory clocks and limits", kMaxLines));
  for (const Group& group : *groups) {
    if (group.points.size() > kMaxPointsPerLine) {
      return refuse(fmt::format("more than {} settings on one line", kMaxPointsPerLine));
    }
    const Series times =
        series_of(group.points, group.axis, [](const Point& p) { return p.time_s; });
    if (times.x.empty()) continue;
    if (std::ranges::adjacent_find(times.x) != times.x.end()) return refuse("a setting twice");
    const Fit time = fit_series(times, Shape::kNonIncreasing);
    if (group.default_point != nullptr) {
      const double x = position(normal, group.axis);
      log_default_time = log_at(time, x);
      curves.default_time_s_ = std::exp(log_default_time);
      curves.default_on_line_ = true;
    }
    curves.lines_.push_back(make_line(group, time, log_default_time));
    if (group.default_point != nullptr) {
      curves.default_power_w_ = curves.lines_.back().power_w->at(position(normal, group.axis));
    }
  }
  return curves;
}

Result<std::vector<WorkloadCurves>> fit_all(const ResponseTable& table) {
  std::vector<WorkloadCurves> all;
  for (const Workload& workload : table.workloads) {
    auto curves = WorkloadCurves::fit(workload);
    if (!curves) return with_context(table.source, curves.error());
    all.push_back(std::move(*curves));
  }
  return all;
}

}  // namespace gpoeo::response
