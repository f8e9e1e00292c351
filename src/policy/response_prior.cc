// SPDX-License-Identifier: Apache-2.0
#include "policy/response_prior.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace gpoeo::policy {
namespace {

// A quadratic in one coordinate, plus what a memory clock adds: ln ratio = (a + c gear) x + b x^2 +
// d gear. Means and standard deviations of the coefficients cover the 19 A100 and 25 Titan X
// workloads of data/tables and are half again as wide; a and b are anticorrelated there by 0.8. The
// more a job's time hangs on the SM clock, the less it hangs on the memory clock: on the Titan X a
// and d correlate by -0.88 (time).
struct ShapePrior {
  double a, a_sd, b, b_sd, ab_correlation;
  double gear, gear_sd, slope_gear, slope_gear_sd;
  double a_gear_correlation, b_gear_correlation;
  double line_sd;      // a memory clock's own offset
  double residual_sd;  // what no quadratic follows
  double own_sd;       // what neighbouring clocks do not share at all: measured curves have steps
  // How far the default lies off the line of the locked clocks. Left alone a card boosts, throttles
  // and wanders, and is not what it is at its highest clock locked.
  double default_sd;
};
// x = f_default / f - 1.
constexpr ShapePrior kTimeShape{.a = 0.40,
                                .a_sd = 0.40,
                                .b = 0.0,
                                .b_sd = 0.2,
                                .ab_correlation = -0.8,
                                .gear = 0.30,
                                .gear_sd = 0.35,
                                .slope_gear = -0.10,
                                .slope_gear_sd = 0.15,
                                .a_gear_correlation = -0.5,
                                .b_gear_correlation = 0.35,
                                .line_sd = 0.05,
                                .residual_sd = 0.012,
                                .own_sd = 0.003,
                                .default_sd = 0.008};
// x = 1 - f / f_default.
constexpr ShapePrior kPowerShape{.a = -1.5,
                                 .a_sd = 0.8,
                                 .b = 1.3,
                                 .b_sd = 0.8,
                                 .ab_correlation = -0.85,
                                 .gear = -0.33,
                                 .gear_sd = 0.15,
                                 .slope_gear = -0.10,
                                 .slope_gear_sd = 0.20,
                                 .a_gear_correlation = 0,
                                 .b_gear_correlation = 0,
                                 .line_sd = 0.06,
                                 .residual_sd = 0.012,
                                 .own_sd = 0.004,
                                 .default_sd = 0.015};

constexpr double kResidualLength = 0.15;  // in ln level
constexpr double kOtherLine = 0.3;        // how much of a residual two memory clocks share

// A model's error is mostly one of level: wrong by the same sign along a whole line.
constexpr double kModelLength = 0.5;
constexpr double kModelLocalShare = 0.15;
constexpr double kModelOtherLine = 0.6;
constexpr double kModelLeastError = 0.01;

// Of one measured ratio, drift included.
constexpr double kTypicalNoise = 0.005;

double matern52(double distance) {
  const double r = std::sqrt(5.0) * std::abs(distance);
  return (1 + r + r * r / 3) * std::exp(-r);
}

std::vector<double> log_levels(std::span<const Candidate> candidates) {
  std::vector<double> out;
  for (const Candidate& c : candidates) out.push_back(std::log(c.level));
  return out;
}

class GenericPrior final : public ResponsePrior {
 public:
  GenericPrior(std::span<const Candidate> candidates, const ShapePrior& shape, bool is_time)
      : candidates_(candidates),
        log_levels_(log_levels(candidates)),
        shape_(shape),
        is_time_(is_time) {}

  double mean(std::size_t i) const override {
    const Candidate& c = candidates_[i];
    const double x = coordinate(c);
    return (shape_.a + shape_.slope_gear * c.gear) * x + shape_.b * x * x + shape_.gear * c.gear;
  }

  double covariance(std::size_t i, std::size_t j) const override {
    const Candidate &p = candidates_[i], &q = candidates_[j];
    const double x = coordinate(p), y = coordinate(q);
    const auto square = [](double v) { return v * v; };
    double sum = square(shape_.a_sd) * x * y + square(shape_.b_sd) * x * x * y * y +
                 shape_.ab_correlation * shape_.a_sd * shape_.b_sd * (x * y * y + x * x * y);
    sum += (square(shape_.gear_sd) + square(shape_.slope_gear_sd) * x * y) * p.gear * q.gear;
    sum += shape_.gear_sd *
           (shape_.a_gear_correlation * shape_.a_sd * (x * q.gear + y * p.gear) +
            shape_.b_gear_correlation * shape_.b_sd * (x * x * q.gear + y * y * p.gear));
    const bool same = p.line == q.line;
    if (same && p.line != 0) sum += square(shape_.line_sd);
    const double near = matern52((log_levels_[i] - log_levels_[j]) / kResidualLength);
    if (i == j) sum += square(i == 0 ? shape_.default_sd : shape_.own_sd);
    return sum + square(shape_.residual_sd) * near * (same ? 1 : kOtherLine);
  }

 private:
  double coordinate(const Candidate& c) const { return is_time_ ? 1 / c.level - 1 : 1 - c.level; }

  std::span<const Candidate> candidates_;
  std::vector<double> log_levels_;
  const ShapePrior& shape_;
  bool is_time_;
};

class ModelPrior final : public ResponsePrior {
 public:
  ModelPrior(std::span<const Candidate> candidates, std::vector<double> means,
             std::vector<double> errors, const ShapePrior& shape)
      : candidates_(candidates),
        log_levels_(log_levels(candidates)),
        means_(std::move(means)),
        errors_(std::move(errors)),
        shape_(shape) {}

  double mean(std::size_t i) const override { return means_[i]; }
  double covariance(std::size_t i, std::size_t j) const override {
    const Candidate &p = candidates_[i], &q = candidates_[j];
    const double distance = (log_levels_[i] - log_levels_[j]);
    const bool same = p.line == q.line;
    const double broad = std::exp(-0.5 * distance * distance / (kModelLength * kModelLength)) *
                         (same ? 1 : kModelOtherLine);
    const double local = matern52(distance / kResidualLength) * (same ? 1 : kOtherLine);
    const double off = i != j ? 0 : i == 0 ? shape_.default_sd : shape_.own_sd;
    return off * off +
           errors_[i] * errors_[j] * ((1 - kModelLocalShare) * broad + kModelLocalShare * local);
  }

 private:
  std::span<const Candidate> candidates_;
  std::vector<double> log_levels_;
  std::vector<double> means_, errors_;
  const ShapePrior& shape_;
};

// The model's word on each candidate; nullopt when it is silent on one.
struct ModelMeans {
  std::vector<double> time, time_error, power, power_error;
};
std::optional<ModelMeans> model_means(const Problem& problem,
                                      std::span<const Candidate> candidates) {
  if (problem.prior.empty()) return std::nullopt;
  ModelMeans out;
  for (const Candidate& c : candidates) {
    if (c.setting.is_default()) {
      for (auto* list : {&out.time, &out.time_error, &out.power, &out.power_error}) {
        list->push_back(0);
      }
      continue;
    }
    const auto at = std::ranges::find(problem.prior, c.setting, &Prediction::setting);
    if (at == problem.prior.end() || !(at->time > 0) || !(at->energy > 0)) return std::nullopt;
    const double time_error = std::max(kModelLeastError, at->time_error / at->time);
    const double energy_error = std::max(kModelLeastError, at->energy_error / at->energy);
    out.time.push_back(std::log(at->time));
    out.time_error.push_back(time_error);
    out.power.push_back(std::log(at->energy / at->time));
    out.power_error.push_back(energy_error);
  }
  return out;
}

// How far the evidence lies from what the model said, in its own standard errors, over the settings
// measured (1 = as far as it thought). A model that is surprised is trusted so much less.
double surprise(std::span<const Evidence> evidence, const std::vector<double>& means,
                const std::vector<double>& errors, double Evidence::*value) {
  struct Sum {
    double value = 0;
    int number = 0;
  };
  std::map<std::size_t, Sum> seen;
  for (const Evidence& e : evidence) {
    Sum& sum = seen[e.candidate];
    sum.value += e.*value;
    ++sum.number;
  }
  const auto baseline = seen.find(0);
  if (baseline == seen.end() || seen.size() < 2) return 1;
  const double level = baseline->second.value / baseline->second.number;
  double squares = 0;
  for (const auto& [candidate, sum] : seen) {
    if (candidate == 0) continue;
    const double off = sum.value / sum.number - level - means[candidate];
    const double sd = std::hypot(errors[candidate], kTypicalNoise);
    squares += off * off / (sd * sd);
  }
  return std::sqrt(std::max(1.0, squares / static_cast<double>(seen.size() - 1)));
}

}  // namespace

ResponsePriors response_priors(const Problem& problem, std::span<const Candidate> candidates,
                               std::span<const Evidence> evidence) {
  auto model = model_means(problem, candidates);
  if (!model) {
    return {.time = std::make_unique<GenericPrior>(candidates, kTimeShape, true),
            .power = std::make_unique<GenericPrior>(candidates, kPowerShape, false)};
  }
  const double time_doubt = surprise(evidence, model->time, model->time_error, &Evidence::log_time);
  const double power_doubt =
      surprise(evidence, model->power, model->power_error, &Evidence::log_power);
  for (double& e : model->time_error) e *= time_doubt;
  for (double& e : model->power_error) e *= power_doubt;
  return {.time = std::make_unique<ModelPrior>(candidates, std::move(model->time),
                                               std::move(model->time_error), kTimeShape),
          .power = std::make_unique<ModelPrior>(candidates, std::move(model->power),
                                                std::move(model->power_error), kPowerShape)};
}

}  // namespace gpoeo::policy
