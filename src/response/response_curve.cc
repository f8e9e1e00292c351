// SPDX-License-Identifier: Apache-2.0
#include "response/response_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>

#include "response/smooth.h"

namespace gpoeo::response {
namespace {

constexpr std::size_t kMaxPointsPerLine = 4096;
constexpr double kNoUpperBound = std::numeric_limits<double>::infinity();

double median(std::vector<double> v) {
  const auto middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
  std::ranges::nth_element(v, middle);
  return *middle;
}

bool is_rate(Counter c) { return c == Counter::kPcieTxBytesPerS || c == Counter::kPcieRxBytesPerS; }

// The points of one line that have the quantity, ascending.
struct Series {
  std::vector<double> x;
  std::vector<double> y;
};

using Quantity = std::function<std::optional<double>(const Point&)>;

double position(const Point& p, Line::Axis axis) {
  if (axis == Line::Axis::kSmClock) return *p.setting.sm_mhz;
  // The card's own limit is above any that was set; a line has at most one such point.
  return p.setting.power_limit_w.value_or(kNoUpperBound);
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
  const Smoothed smoothed = smooth(s.x, y, options);

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

// In the table's order, but the default's first.
std::vector<Group> group_points(const Workload& workload) {
  std::vector<Group> groups;
  for (const Point& p : workload.points) {
    auto group = group_of(p);
    if (!group) continue;
    auto into = std::ranges::find_if(groups, [&](const Group& g) { return g.takes(*group); });
    if (into == groups.end()) into = groups.insert(groups.end(), std::move(*group));
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
                                  is_rate(counter) ? kNoUpperBound : 1.0);
  }
  return line;
}

// How far a measured value is from the one asked for; what is not asked for or not known decides
// nothing, so that the first (the default's, then the highest) wins.
double mismatch(const std::optional<double>& asked, const std::optional<double>& measured) {
  if (!asked) return 0;
  if (!measured) return 1e3;
  return std::abs(std::log(*asked / *measured));
}

// Clocks and limits are whole numbers in every driver.
bool differs(const std::optional<double>& asked, const std::optional<double>& measured) {
  return asked && measured && std::abs(*asked - *measured) > 0.5;
}

}  // namespace

Curve::Curve(MonotoneCubic fit, Scale scale, double upper, const Residuals& residuals)
    : fit_(std::move(fit)), scale_(scale), upper_(upper), residuals_(residuals) {}

double Curve::at(double x) const {
  const double z = fit_(x);
  return std::clamp(scale_ == Scale::kLog ? std::exp(z) : z, 0.0, upper_);
}

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
  for (const Group& group : group_points(workload)) {
    if (group.points.size() > kMaxPointsPerLine) {
      return refuse(fmt::format("more than {} settings on one line", kMaxPointsPerLine));
    }
    const Series times =
        series_of(group.points, group.axis, [](const Point& p) { return p.time_s; });
    if (times.x.empty()) continue;
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

Response WorkloadCurves::default_response() const {
  return {.power_w = default_power_w_,
          .relative_power = 1,
          .relative_energy = 1,
          .counters = default_counters_,
          .used = default_setting_};
}

const Line* WorkloadCurves::nearest_line(const Setting& setting) const {
  const Line* best = nullptr;
  std::array<double, 3> best_mismatch{};
  for (const Line& line : lines_) {
    const bool over_clocks = line.axis == Line::Axis::kSmClock;
    const std::array<double, 3> m = {
        setting.driver_clocks == line.driver_clocks && setting.sm_mhz.has_value() == over_clocks
            ? 0.0
            : 1.0,
        mismatch(setting.mem_mhz, line.mem_mhz),
        over_clocks ? mismatch(setting.power_limit_w, line.power_limit_w) : 0};
    if (best == nullptr || m < best_mismatch) {
      best = &line;
      best_mismatch = m;
    }
  }
  return best;
}

Response WorkloadCurves::at(const Setting& asked) const {
  Setting s = asked;
  const bool nothing_asked = !s.sm_mhz && !s.mem_mhz && !s.power_limit_w;
  if (nothing_asked || s == default_setting_) {
    if (!default_on_line_) return default_response();
    s = default_setting_;
  }
  if (!s.driver_clocks) {
    // Leave what is not asked for at the default.
    if (!s.sm_mhz && default_setting_.sm_mhz) s.sm_mhz = default_setting_.sm_mhz;
    if (!s.mem_mhz) s.mem_mhz = default_setting_.mem_mhz;
  }
  const Line* const line = nearest_line(s);
  if (line == nullptr) {
    Response r = default_response();
    r.clamped = true;
    return r;
  }
  const bool over_clocks = line->axis == Line::Axis::kSmClock;
  const std::optional<double>& wanted = over_clocks ? s.sm_mhz : s.power_limit_w;
  const double x_asked = wanted.value_or(line->x.back());
  const double x = std::clamp(x_asked, line->x.front(), line->x.back());

  Response r;
  r.used = {.sm_mhz = over_clocks ? std::optional(x) : std::nullopt,
            .mem_mhz = line->mem_mhz,
            .power_limit_w = over_clocks ? line->power_limit_w : std::optional(x),
            .driver_clocks = line->driver_clocks};
  r.clamped = std::abs(x - x_asked) > 0.5;
  r.other_memory = differs(asked.mem_mhz, line->mem_mhz);
  r.other_limit = over_clocks && differs(asked.power_limit_w, line->power_limit_w);
  r.relative_time = line->relative_time.at(x);
  if (line->power_w) {
    r.power_w = line->power_w->at(x);
    r.relative_power = *r.power_w / default_power_w_;
    r.relative_energy = r.relative_time * *r.relative_power;
  }
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    if (line->counters[i]) r.counters.values[i] = line->counters[i]->at(x);
  }
  return r;
}

}  // namespace gpoeo::response
