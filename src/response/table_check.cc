// SPDX-License-Identifier: Apache-2.0
#include "response/table_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "response/robust.h"

namespace gpoeo::response {
namespace {

constexpr double kLeastNoise = 3e-3;  // as SmoothOptions
constexpr double kGone = 4.685;       // Tukey's biweight is 0 from here on
constexpr std::size_t kNamed = 4;     // outliers named in a line

bool on_line(const Point& point, const Line& line) {
  const Setting& s = point.setting;
  const bool over_clocks = line.axis == Line::Axis::kSmClock;
  if (s.sm_mhz.has_value() != over_clocks || s.mem_mhz != line.mem_mhz) return false;
  if (s.driver_clocks != line.driver_clocks) return false;
  return over_clocks ? s.power_limit_w == line.power_limit_w : s.power_limit_w.has_value();
}

double position(const Point& point, const Line& line) {
  return line.axis == Line::Axis::kSmClock ? *point.setting.sm_mhz : *point.setting.power_limit_w;
}

std::vector<OffPoint> outliers(const std::vector<OffPoint>& off, double noise) {
  std::vector<OffPoint> far;
  std::ranges::copy_if(off, std::back_inserter(far), [&](const OffPoint& p) {
    return std::abs(p.off) > kGone * std::max(noise, kLeastNoise);
  });
  return far;
}

std::string name_outliers(std::vector<OffPoint> points) {
  std::ranges::sort(points, std::greater(), [](const OffPoint& p) { return std::abs(p.off); });
  std::string text;
  for (std::size_t i = 0; i < std::min(points.size(), kNamed); ++i)
    text +=
        fmt::format("{}{:g} ({:+.1f} %)", i == 0 ? "" : ", ", points[i].at, 100 * points[i].off);
  if (points.size() > kNamed) text += ", ...";
  return text;
}

void look_at_repeats(const std::vector<const Point*>& points, LineCheck& check) {
  std::vector<double> scatters;
  for (const Point* p : points) {
    check.rows += p->repeats;
    check.left_out += p->left_out;
    if (!p->time_s) ++check.without_time;
    if (!p->power_w) ++check.without_power;
    if (p->repeats > 1) ++check.repeated;
    if (p->time_scatter) scatters.push_back(*p->time_scatter);
  }
  if (scatters.empty()) return;
  check.worst_scatter = std::ranges::max(scatters);
  check.median_scatter = median(std::move(scatters));
}

void look_for_rises(const std::vector<const Point*>& points, const Line& line, LineCheck& check) {
  const double least = std::max(kLeastNoise, 2 * std::sqrt(2.0) * check.time.noise);
  const Point* before = nullptr;
  for (const Point* p : points) {
    if (!p->time_s) continue;
    const double rise = before ? *p->time_s / *before->time_s - 1 : 0;
    before = p;
    if (rise <= least) continue;
    ++check.rising;
    if (rise > check.worst_rise) {
      check.worst_rise = rise;
      check.worst_rise_at = position(*p, line);
    }
  }
}

LineCheck check_line(const Workload& workload, const WorkloadCurves& curves, const Line& line) {
  std::vector<const Point*> points;
  for (const Point& p : workload.points)
    if (on_line(p, line)) points.push_back(&p);
  std::ranges::sort(points, {}, [&](const Point* p) { return position(*p, line); });
  LineCheck check{.workload = workload.name,
                  .mem_mhz = line.mem_mhz,
                  .power_limit_w = line.power_limit_w,
                  .axis = line.axis,
                  .points = static_cast<int>(points.size()),
                  .time = line.relative_time.residuals(),
                  .power = line.power_w ? line.power_w->residuals() : Residuals{}};
  look_at_repeats(points, check);
  look_for_rises(points, line, check);
  std::vector<OffPoint> time_off, power_off;
  for (const Point* p : points) {
    const double x = position(*p, line);
    const bool is_default = p == &workload.default_point();
    if (p->time_s) {
      const double off = *p->time_s / (curves.default_time_s() * line.relative_time.at(x)) - 1;
      time_off.push_back({x, off});
      if (is_default) check.default_off = off;
    }
    if (p->power_w && line.power_w) power_off.push_back({x, *p->power_w / line.power_w->at(x) - 1});
  }
  check.time_outliers = outliers(time_off, check.time.noise);
  check.power_outliers = outliers(power_off, check.power.noise);
  for (const auto& counter : line.counters) check.counters += counter ? 1 : 0;
  return check;
}

}  // namespace

std::vector<LineCheck> check_workload(const Workload& workload, const WorkloadCurves& curves) {
  std::vector<LineCheck> checks;
  for (const Line& line : curves.lines()) checks.push_back(check_line(workload, curves, line));
  return checks;
}

std::string describe_head() {
  return fmt::format("{:<24} {:>7} {:>6} {:>5} | {:^13} | {:^13} | what was done", "workload",
                     "mem MHz", "points", "rows", "time noise, %", "power noise,%");
}

std::string describe(const LineCheck& c) {
  std::string text =
      fmt::format("{:<24} {:>7} {:>6} {:>5} | {:>13.2f} | {:>13.2f} |", c.workload.substr(0, 24),
                  c.mem_mhz ? fmt::format("{:g}", *c.mem_mhz) : "-", c.points, c.rows,
                  100 * c.time.noise, 100 * c.power.noise);
  const char* separator = " ";
  const auto add = [&](const std::string& part) {
    text += separator + part;
    separator = "; ";
  };
  if (c.repeated > 0 && c.median_scatter)
    add(fmt::format("{} settings repeated, averaged, scatter {:.2f} % (worst {:.2f} %)", c.repeated,
                    100 * *c.median_scatter, 100 * *c.worst_scatter));
  if (c.left_out > 0) add(fmt::format("{} repeats left out", c.left_out));
  if (!c.time_outliers.empty())
    add(fmt::format("{} time outliers: {}", c.time_outliers.size(),
                    name_outliers(c.time_outliers)));
  if (!c.power_outliers.empty())
    add(fmt::format("{} power outliers: {}", c.power_outliers.size(),
                    name_outliers(c.power_outliers)));
  if (c.rising > 0)
    add(fmt::format("{} times rose with the clock, pooled (worst {:+.1f} % at {:g})", c.rising,
                    100 * c.worst_rise, c.worst_rise_at));
  if (c.default_off && std::abs(*c.default_off) > std::max(kLeastNoise, 2 * c.time.noise))
    add(fmt::format("the default point lies {:+.1f} % off its curve, which stands",
                    100 * *c.default_off));
  if (c.without_time > 0) add(fmt::format("{} without time", c.without_time));
  if (c.without_power > 0) add(fmt::format("{} without power", c.without_power));
  if (c.counters == 0) add("no counters");
  if (c.time.lambda == 0) add("too few points to smooth");
  if (separator == std::string_view(" ")) add("smoothed, nothing else");
  return text;
}

}  // namespace gpoeo::response
