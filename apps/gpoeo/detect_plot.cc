// SPDX-License-Identifier: Apache-2.0
#include "detect_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <vector>

#include "base/markup.h"
#include "iteration/spectrum.h"

namespace gpoeo::app {
namespace {

constexpr double kWidth = 960, kPanelHeight = 220, kLeft = 70, kRight = 20, kTop = 30, kBottom = 40;

struct Axis {
  double low = 0, high = 1;
  double share(double v) const { return high > low ? (v - low) / (high - low) : 0.5; }
};

Axis axis_of(std::span<const double> values) {
  if (values.empty()) return {};
  const auto [low, high] = std::ranges::minmax(values);
  return {low, high};
}

// One of the pictures below each other.
class Panel {
 public:
  Panel(std::string& out, int row, std::string_view title, Axis x, Axis y)
      : out_(out), top_(kTop + row * (kPanelHeight + kTop + kBottom)), x_(x), y_(y) {
    print("<text x='{}' y='{}' class='title'>{}</text>\n", kLeft, top_ - 8, escape_markup(title));
    print("<rect x='{}' y='{}' width='{}' height='{}' class='frame'/>\n", kLeft, top_,
          kWidth - kLeft - kRight, kPanelHeight);
    for (int i = 0; i <= 4; ++i) {
      const double u = i / 4.0, vx = x.low + u * (x.high - x.low),
                   vy = y.low + u * (y.high - y.low);
      print("<text x='{:.1f}' y='{:.1f}' text-anchor='middle'>{:.4g}</text>\n", px(vx),
            top_ + kPanelHeight + 16, vx);
      print("<text x='{:.1f}' y='{:.1f}' text-anchor='end'>{:.4g}</text>\n", kLeft - 6, py(vy) + 4,
            vy);
    }
  }

  void line(std::span<const double> xs, std::span<const double> ys) {
    out_ += "<polyline class='line' points='";
    for (std::size_t i = 0; i < xs.size(); ++i) print("{:.1f},{:.1f} ", px(xs[i]), py(ys[i]));
    out_ += "'/>\n";
  }
  void dots(std::span<const double> xs, std::span<const double> ys) {
    for (std::size_t i = 0; i < xs.size(); ++i) {
      print("<circle cx='{:.1f}' cy='{:.1f}' r='1.2'/>\n", px(xs[i]), py(ys[i]));
    }
  }
  void mark(double x) {
    print("<line class='mark' x1='{0:.1f}' x2='{0:.1f}' y1='{1:.1f}' y2='{2:.1f}'/>\n", px(x), top_,
          top_ + kPanelHeight);
  }

 private:
  template <typename... Args>
  void print(fmt::format_string<Args...> f, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), f, std::forward<Args>(args)...);
  }
  double px(double v) const { return kLeft + x_.share(v) * (kWidth - kLeft - kRight); }
  double py(double v) const { return top_ + (1 - y_.share(v)) * kPanelHeight; }

  std::string& out_;
  double top_;
  Axis x_, y_;
};

void draw_folded(std::string& out, const iteration::PowerTrace& trace, double period_s) {
  std::vector<double> phase;
  for (const double t : trace.t_s) phase.push_back(std::fmod(t - trace.t_s.front(), period_s));
  Panel panel(out, 1, fmt::format("folded at {:.6g} s: W over s", period_s), {0, period_s},
              axis_of(trace.power_w));
  panel.dots(phase, trace.power_w);
}

void draw_spectrum(std::string& out, int row, const iteration::PowerTrace& trace,
                   std::optional<double> period_s) {
  const auto series = iteration::make_series(trace);
  if (!series) return;
  const auto spectrum = iteration::amplitude_spectrum(series->value, series->step_s, 1);
  std::vector<double> hz;
  for (std::size_t i = 0; i < spectrum.amplitude.size(); ++i) {
    hz.push_back(static_cast<double>(i) * spectrum.step_hz);
  }
  Panel panel(out, row, "spectrum: W over Hz, harmonics of the period marked", {0, hz.back()},
              axis_of(spectrum.amplitude));
  constexpr int kMostMarks = 20;
  for (int h = 1; period_s && h <= kMostMarks && h / *period_s <= hz.back(); ++h) {
    panel.mark(h / *period_s);
  }
  panel.line(hz, spectrum.amplitude);
}

}  // namespace

std::string detection_svg(std::string_view title, const iteration::PowerTrace& trace,
                          std::optional<double> period_s) {
  const int panels = period_s ? 3 : 2;
  std::string out = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}'>\n"
      "<style>text{{font:12px sans-serif}}.title{{font-weight:bold}}"
      ".frame{{fill:none;stroke:#999}}.line{{fill:none;stroke:#06c;stroke-width:1}}"
      "circle{{fill:#06c}}.mark{{stroke:#e80;stroke-dasharray:3 3}}</style>\n"
      "<rect width='100%' height='100%' fill='white'/>\n",
      kWidth, panels * (kPanelHeight + kTop + kBottom) + kTop);
  Panel trace_panel(out, 0, fmt::format("{}: W over s", title), axis_of(trace.t_s),
                    axis_of(trace.power_w));
  trace_panel.line(trace.t_s, trace.power_w);
  if (period_s) draw_folded(out, trace, *period_s);
  draw_spectrum(out, panels - 1, trace, period_s);
  return out + "</svg>\n";
}

}  // namespace gpoeo::app
