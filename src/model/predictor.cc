// SPDX-License-Identifier: Apache-2.0
#include "model/predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/chance.h"
#include "model/fitted.h"

namespace gpoeo::model {
namespace {

// 90 % of a normal distribution lie within this many standard deviations.
constexpr double kMostLog = 5;  // a factor of 150: nothing physical lies beyond

struct CardLine {
  PredictedLine line;
  double slowdown = 1;  // of the memory
};

}  // namespace

std::string_view to_string(Target target) {
  switch (target) {
    case Target::kSlope:
      return "slope";
    case Target::kKnee:
      return "knee";
    case Target::kLevel:
      return "level";
    case Target::kPower0:
      return "power0";
    case Target::kPower1:
      return "power1";
    case Target::kCount:
      break;
  }
  return "?";
}

TreeRow tree_row(const Features& features, double memory_slowdown) {
  TreeRow row;
  for (std::size_t k = 0; k < kFeatureCount; ++k)
    row[k] = features.values[k] ? static_cast<float>(*features.values[k])
                                : std::numeric_limits<float>::quiet_NaN();
  row[static_cast<std::size_t>(Feature::kMemorySlowdown)] = static_cast<float>(memory_slowdown);
  return row;
}

double line_top(double least_slowdown) { return std::max(1.0, least_slowdown); }

PredictedLine prior_line(const Fitted& fitted, const Features& features, double memory_slowdown,
                         double top) {
  return {prior_shape(fitted.time_prior, features, memory_slowdown, top),
          fitted.power_kernel.predict(kernel_point(features, memory_slowdown))};
}

void correct(PredictedLine& line, const Corrections& by, bool is_default) {
  const auto of = [&by](Target t) { return by[static_cast<std::size_t>(t)]; };
  line.shape.log_slope += of(Target::kSlope);
  line.shape.knee += of(Target::kKnee);
  if (!is_default) line.shape.level = std::max(0.0, line.shape.level + of(Target::kLevel));
  line.scores[0] += of(Target::kPower0);
  line.scores[1] += of(Target::kPower1);
}

double doubt(double sm_slowdown, double memory_slowdown) {
  return 1 - 1 / std::max(1.0, sm_slowdown * memory_slowdown);
}

Predictor::Predictor(std::shared_ptr<const Fitted> fitted) : fitted_(std::move(fitted)) {}

const ModelFacts& Predictor::facts() const { return fitted_->facts; }

Status Predictor::check_fits(const Device& device) const {
  const std::string& own = fitted_->facts.device;
  if (own == "any" || own == device.name) return {};
  return make_error(
      ErrorKind::kNotSupported,
      fmt::format("the model is for {}, this GPU is {}: name another --model, or train "
                  "one with `gpoeo train`",
                  own, device.name));
}

std::vector<PointPrediction> Predictor::predict(const Device& device, const Profile& profile,
                                                const std::vector<MemoryClock>& clocks) const {
  const Features features = make_features(device, profile);
  std::vector<CardLine> lines;
  for (const MemoryClock& memory : clocks) {
    CardLine& card = lines.emplace_back();
    if (memory.memory_mhz && device.memory_mhz && *memory.memory_mhz > 0)
      card.slowdown = *device.memory_mhz / *memory.memory_mhz;
    const double highest = memory.sm_mhz.empty() ? device.sm_mhz : std::ranges::max(memory.sm_mhz);
    card.line = prior_line(*fitted_, features, card.slowdown, line_top(device.sm_mhz / highest));
    const TreeRow row = tree_row(features, card.slowdown);
    Corrections by{};
    for (std::size_t t = 0; t < kTargetCount; ++t) by[t] = fitted_->forests[t].predict(row);
    correct(card.line, by, card.slowdown == 1);
  }
  // What is predicted at the default setting is taken off, so that it answers exactly 1.
  PredictedLine base = prior_line(*fitted_, features, 1, 1);
  const TreeRow row = tree_row(features, 1);
  Corrections by{};
  for (std::size_t t = 0; t < kTargetCount; ++t) by[t] = fitted_->forests[t].predict(row);
  correct(base, by, true);
  const double power_at_default = fitted_->power_basis.log_power(base.scores, 1);

  std::vector<PointPrediction> points;
  for (std::size_t m = 0; m < clocks.size(); ++m) {
    const std::size_t spread = lines[m].slowdown == 1 ? 0 : 1;
    for (const double mhz : clocks[m].sm_mhz) {
      const double x = device.sm_mhz / mhz;
      // A slower memory never makes a job faster, whatever each line alone says.
      double log_t = log_time(lines[m].line.shape, x);
      for (const CardLine& other : lines)
        if (other.slowdown < lines[m].slowdown)
          log_t = std::max(log_t, log_time(other.line.shape, x));
      log_t = std::clamp(log_t, -kMostLog, kMostLog);
      const double log_p =
          std::clamp(fitted_->power_basis.log_power(lines[m].line.scores, x) - power_at_default,
                     -kMostLog, kMostLog);
      PointPrediction p;
      p.sm_mhz = mhz;
      p.memory_mhz = clocks[m].memory_mhz;
      p.time = std::exp(log_t);
      p.energy = std::exp(log_t + log_p);
      p.time_error = p.time * fitted_->time_spread[spread] / kNinety * doubt(x, lines[m].slowdown);
      p.energy_error =
          p.energy * fitted_->energy_spread[spread] / kNinety * doubt(x, lines[m].slowdown);
      points.push_back(p);
    }
  }
  return points;
}

}  // namespace gpoeo::model
