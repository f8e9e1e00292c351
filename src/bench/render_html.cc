// SPDX-License-Identifier: Apache-2.0
// The page: the summary, and for each workload the truth's curves with what each policy tried and
// chose there (first seed, first limit).
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/markup.h"
#include "bench/render.h"

namespace gpoeo::bench {
namespace {

constexpr double kWidth = 460, kHeight = 240, kLeft = 46, kRight = 12, kTop = 12, kBottom = 34;
constexpr const char* kColours[] = {"#0b6e4f", "#c8553d", "#3d5a80", "#8e6c8a",
                                    "#b08900", "#5f7470", "#222222", "#d1495b"};

const char* colour(std::size_t contestant) { return kColours[contestant % std::size(kColours)]; }

// Where a setting stands on the axis: its clock, or its limit where that is the only knob.
double place(const policy::ClockSetting& setting, double default_place) {
  if (setting.sm) return to_mhz(*setting.sm);
  if (setting.power_limit) return setting.power_limit->value();
  return default_place;
}

struct Axes {
  double x_low, x_high, y_low, y_high;
  double x(double v) const {
    return kLeft + (v - x_low) / std::max(x_high - x_low, 1e-9) * (kWidth - kLeft - kRight);
  }
  double y(double v) const {
    return kHeight - kBottom -
           (std::clamp(v, y_low, y_high) - y_low) / std::max(y_high - y_low, 1e-9) *
               (kHeight - kTop - kBottom);
  }
};

// Settings of one memory clock, ascending.
using Line = std::vector<const TruthPoint*>;

std::map<double, Line> lines_of(const Truth& truth) {
  std::map<double, Line> lines;  // by memory clock; 0: the default's
  for (const TruthPoint& point : truth.points()) {
    lines[point.setting.memory ? -to_mhz(*point.setting.memory) : 0].push_back(&point);
  }
  return lines;
}

double default_place_of(const Truth& truth, const twin::DeviceModel& device) {
  const bool limits = truth.points().size() > 1 && truth.points()[1].setting.power_limit;
  return limits ? device.limit_default_w
                : device.sm_mhz[static_cast<std::size_t>(device.default_sm)];
}

template <typename Value>
std::string polyline(const Line& line, const Axes& axes, double default_place, const char* stroke,
                     double opacity, Value value) {
  std::vector<std::pair<double, double>> points;
  for (const TruthPoint* p : line) {
    points.emplace_back(place(p->setting, default_place), value(p->response));
  }
  std::ranges::sort(points);
  std::string text;
  for (const auto& [x, y] : points) text += fmt::format("{:.1f},{:.1f} ", axes.x(x), axes.y(y));
  return fmt::format(
      "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-opacity=\"{}\"/>\n", text, stroke,
      opacity);
}

std::string grid(const Axes& axes, double limit) {
  std::string out;
  for (double y = 0.5; y <= axes.y_high + 1e-9; y += 0.1) {
    if (y < axes.y_low) continue;
    out += fmt::format(
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#ddd\"/>"
        "<text x=\"{3}\" y=\"{4:.1f}\" class=\"axis\" text-anchor=\"end\">{5:.1f}</text>\n",
        kLeft, kWidth - kRight, axes.y(y), kLeft - 6, axes.y(y) + 4, y);
  }
  out += fmt::format(
      "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#999\" "
      "stroke-dasharray=\"4 3\"/>\n",
      kLeft, kWidth - kRight, axes.y(1 + limit));
  for (const double x : {axes.x_low, (axes.x_low + axes.x_high) / 2, axes.x_high}) {
    out += fmt::format(
        "<text x=\"{:.1f}\" y=\"{}\" class=\"axis\" text-anchor=\"middle\">{:.0f}</text>\n",
        axes.x(x), kHeight - kBottom + 16, x);
  }
  return out;
}

// Small rings: tried; a disc: held at the end.
std::string marks(const Shown& shown, std::size_t subject, const Axes& axes, double default_place) {
  const Truth& truth = shown.contest.truths[subject];
  std::string out;
  for (const Row& row : shown.contest.rows) {
    const bool first = row.limit == 0 && row.seed == shown.options.first_seed;
    if (row.subject != subject || !first || !row.error.empty()) continue;
    const auto at = [&](const policy::ClockSetting& setting) {
      return std::pair(axes.x(place(setting, default_place)), axes.y(truth.at(setting).energy));
    };
    for (const Step& step : row.run.steps) {
      if (step.purpose != policy::Purpose::kProbe) continue;
      const auto [x, y] = at(step.setting);
      out += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"none\" stroke=\"{}\"><title>{}, "
          "{:.0f} s: {}</title></circle>\n",
          x, y, colour(row.contestant), escape_html(shown.contest.contestants[row.contestant].name),
          step.at_s, escape_html(policy::to_string(step.setting) + ": " + step.why));
    }
    const auto [x, y] = at(row.run.held);
    out += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"{}\" fill-opacity=\"0.8\"><title>{} "
        "holds {}</title></circle>\n",
        x, y, colour(row.contestant), escape_html(shown.contest.contestants[row.contestant].name),
        escape_html(policy::to_string(row.run.held)));
  }
  return out;
}

std::string figure(const Shown& shown, std::size_t subject) {
  const Truth& truth = shown.contest.truths[subject];
  const Subject& what = shown.suite.subjects[subject];
  const double base = default_place_of(truth, shown.suite.devices.at(what.device));
  Axes axes{base, base, 1, 1};
  for (const TruthPoint& p : truth.points()) {
    axes.x_low = std::min(axes.x_low, place(p.setting, base));
    axes.y_low = std::min(axes.y_low, p.response.energy);
  }
  axes.y_low = std::max(0.0, axes.y_low - 0.03);
  axes.y_high = 1.3;
  std::string out =
      fmt::format("<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {} {}\" role=\"img\">\n",
                  escape_html(what.name), kWidth, kHeight);
  out += grid(axes, shown.options.limits.front());
  for (const auto& [memory, line] : lines_of(truth)) {
    const double opacity = memory == 0 ? 1.0 : 0.35;
    out +=
        polyline(line, axes, base, "#1b7f3b", opacity, [](const Response& r) { return r.energy; });
    out += polyline(line, axes, base, "#555", opacity, [](const Response& r) { return r.time; });
  }
  const auto best = std::ranges::find_if(
      shown.contest.rows, [&](const Row& row) { return row.subject == subject && row.limit == 0; });
  if (best != shown.contest.rows.end()) {
    const double x = axes.x(place(best->oracle.setting, base));
    const double y = axes.y(truth.at(best->oracle.setting).energy);
    out += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f} l5 9 h-10 z\" fill=\"#000\"><title>the best setting: {2}"
        "</title></path>\n",
        x, y + 3, escape_html(policy::to_string(best->oracle.setting)));
  }
  out += marks(shown, subject, axes, base);
  return out + "</svg></figure>\n";
}

std::string legend(const Shown& shown) {
  std::string out = "<p class=\"legend\">";
  for (std::size_t c = 0; c < shown.contest.contestants.size(); ++c) {
    out += fmt::format("<span style=\"color:{}\">&#9679; {}</span> ", colour(c),
                       escape_html(shown.contest.contestants[c].name));
  }
  return out +
         "</p>\n<p>Green: energy an iteration, grey: time, both over default clocks, against SM "
         "clock in MHz (power limit in W where that is the only knob); pale: slower memory clocks. "
         "Dashed: the limit on time. Triangle: the best setting. Rings: tried; discs: held at the "
         "end (first seed).</p>\n";
}

}  // namespace

std::string escape_html(std::string_view text) { return escape_markup(text); }

std::string as_html(const Shown& shown) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>gpoeo bench: {0}"
      "</title>\n<style>body{{font:15px/1.4 sans-serif;max-width:1500px;margin:2em auto;"
      "padding:0 1em}}pre{{overflow-x:auto;background:#f6f6f6;padding:1em}}main{{display:grid;"
      "grid-template-columns:repeat(auto-fill,minmax(420px,1fr));gap:1em}}figure{{margin:0;"
      "border:1px solid #ddd;padding:.5em}}.axis{{font-size:11px;fill:#666}}"
      "</style></head>\n<body><h1>gpoeo bench: {0}</h1>\n<p>{1}; simulated on virtual time.</p>\n"
      "<p><code>{2}</code></p>\n<pre>{3}</pre>\n",
      escape_html(shown.suite.name), escape_html(shown.suite.origin), escape_html(shown.command),
      escape_html(as_text(shown)));
  out += legend(shown) + "<main>\n";
  for (std::size_t s = 0; s < shown.suite.subjects.size(); ++s) out += figure(shown, s);
  return out + "</main></body></html>\n";
}

}  // namespace gpoeo::bench
