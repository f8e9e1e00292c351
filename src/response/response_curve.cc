// SPDX-License-Identifier: Apache-2.0
#include "response/response_curve.h"

#include <algorithm>
#include <cmath>

namespace gpoeo::response {
namespace {

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
