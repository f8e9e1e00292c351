// SPDX-License-Identifier: Apache-2.0
#include "model/time_prior.h"

#include <Eigen/Dense>

#include <algorithm>
#include <cmath>
#include <vector>

namespace gpoeo::model {
namespace {

using Vector = Eigen::Matrix<double, kTimePriorSize, 1>;
using Matrix = Eigen::Matrix<double, kTimePriorSize, kTimePriorSize>;

struct Belief {
  double mean, sigma;
};
// A saturated tensor pipe is bound by the SM clock alone: c0 + c1 = 1. The rest are what the
// physics leaves open, wide.
constexpr std::array<Belief, kTimePriorSize> kBeliefs{{
    {0.70, 0.30},   // c0
    {0.30, 0.10},   // c1
    {0.20, 0.40},   // c2
    {0.00, 0.20},   // c3
    {0.00, 0.20},   // c4
    {0.00, 0.30},   // c5
    {0.60, 0.30},   // c6
    {0.90, 0.40},   // c7
    {0.00, 0.30},   // c8
    {1.15, 0.20},   // c9
    {-0.50, 1.00},  // c10
    {0.00, 1.00},   // c11
}};
constexpr double kBeliefWeight = 0.006;  // against the mean loss of a line
constexpr double kSoftError = 0.02;      // of a curve; larger errors count linearly
constexpr double kLeastSlope = 0.02;
constexpr std::size_t kMostLines = 240;
constexpr std::size_t kPointsPerLine = 12;

double logistic(double z) { return 1 / (1 + std::exp(-z)); }

struct Inputs {
  double busy, dram, tensor, host, pipes, load;
};

Inputs inputs(const TimePrior& c, const Features& f) {
  const double load = std::log(f.or_else(Feature::kPowerFraction, 0.5)) + 0.7;
  Inputs in{};
  const bool counters = f[Feature::kGrActive].has_value();
  in.busy =
      std::clamp(f[Feature::kGrActive].value_or(f.or_else(Feature::kUtilization, 1.0)), 0.0, 1.0);
  in.dram = f[Feature::kDramPerGr].value_or(logistic(c[10] + c[11] * load));
  in.tensor = f.or_else(Feature::kTensorActive, 0);
  // 20 MB/s and 0.2: the middle of what the measured jobs do, and a floor.
  in.host = f[Feature::kLogPcieTx] ? std::log(std::expm1(*f[Feature::kLogPcieTx]) / 20 + 0.2) : 0.0;
  in.pipes = counters
                 ? std::max({f.or_else(Feature::kFp64Active, 0), f.or_else(Feature::kFp32Active, 0),
                             f.or_else(Feature::kFp16Active, 0)}) -
                       0.2
                 : 0.0;
  in.load = counters ? 0.0 : load;
  return in;
}

struct Sample {
  LineOf line;
  std::vector<std::size_t> points;
};

std::vector<Sample> samples(std::span<const LineOf> lines) {
  std::vector<Sample> out;
  const std::size_t step = (lines.size() + kMostLines - 1) / std::max<std::size_t>(1, kMostLines);
  for (std::size_t i = 0; i < lines.size(); i += std::max<std::size_t>(1, step)) {
    Sample s{lines[i], {}};
    const std::size_t n = lines[i].line->sm_slowdown.size();
    const std::size_t stride = std::max<std::size_t>(1, n / kPointsPerLine);
    for (std::size_t p = n; p > 0; p -= std::min(p, stride)) s.points.push_back(p - 1);
    out.push_back(std::move(s));
  }
  return out;
}

// Residuals of one line, in points order.
void residuals(const TimePrior& c, const Sample& s, std::vector<double>& out) {
  const Line& line = *s.line.line;
  const TimeShape shape =
      prior_shape(c, s.line.example->features, line.memory_slowdown, line.sm_slowdown.front());
  out.clear();
  for (const std::size_t p : s.points)
    out.push_back(log_time(shape, line.sm_slowdown[p]) - line.log_time[p]);
}

double mean_square(const std::vector<double>& r) {
  double sum = 0;
  for (const double v : r) sum += v * v;
  return sum / static_cast<double>(std::max<std::size_t>(1, r.size()));
}

double belief_loss(const TimePrior& c) {
  double sum = 0;
  for (std::size_t k = 0; k < kTimePriorSize; ++k) {
    const double z = (c[k] - kBeliefs[k].mean) / kBeliefs[k].sigma;
    sum += z * z;
  }
  return 0.5 * kBeliefWeight * sum;
}

double loss(const TimePrior& c, const std::vector<Sample>& all) {
  double sum = 0;
  std::vector<double> r;
  for (const Sample& s : all) {
    residuals(c, s, r);
    sum += std::sqrt(mean_square(r) + kSoftError * kSoftError) - kSoftError;
  }
  return sum / static_cast<double>(all.size()) + belief_loss(c);
}

// Gauss-Newton terms of the loss around c; each line weighted by the slope of its square root.
void normal_equations(const TimePrior& c, const std::vector<Sample>& all, Matrix& h, Vector& g) {
  constexpr double kStep = 1e-5;
  h.setZero();
  g.setZero();
  std::vector<double> at, moved;
  for (const Sample& s : all) {
    residuals(c, s, at);
    const double n = static_cast<double>(at.size());
    const double weight = 1 / (std::sqrt(mean_square(at) + kSoftError * kSoftError) * n *
                               static_cast<double>(all.size()));
    std::vector<Vector> jacobian(at.size(), Vector::Zero());
    for (std::size_t k = 0; k < kTimePriorSize; ++k) {
      TimePrior t = c;
      t[k] += kStep;
      residuals(t, s, moved);
      for (std::size_t p = 0; p < at.size(); ++p)
        jacobian[p][static_cast<Eigen::Index>(k)] = (moved[p] - at[p]) / kStep;
    }
    for (std::size_t p = 0; p < at.size(); ++p) {
      g += weight * at[p] * jacobian[p];
      h += weight * jacobian[p] * jacobian[p].transpose();
    }
  }
  for (std::size_t k = 0; k < kTimePriorSize; ++k) {
    const auto i = static_cast<Eigen::Index>(k);
    const double w = kBeliefWeight / (kBeliefs[k].sigma * kBeliefs[k].sigma);
    h(i, i) += w;
    g[i] += w * (c[k] - kBeliefs[k].mean);
  }
}

}  // namespace

TimeShape prior_shape(const TimePrior& c, const Features& f, double memory_slowdown, double top) {
  const Inputs in = inputs(c, f);
  TimeShape shape;
  shape.top = top;
  const double wait = std::min(in.dram * memory_slowdown, 6.0);
  const double wait_at_default = std::min(in.dram, 6.0);
  shape.level =
      std::log1p(std::max(0.0, in.busy * (soft_plus(c[9] * wait - 1, kKneeWidth) -
                                          soft_plus(c[9] * wait_at_default - 1, kKneeWidth))));
  const double strength = std::max(0.02, c[0] + c[1] * in.tensor);
  const double slope =
      kLeastSlope + strength * std::pow(in.busy, std::exp(c[2])) *
                        std::exp(c[3] * in.host + c[4] * in.pipes + c[5] * in.load);
  shape.log_slope = std::log(slope) - shape.level;
  const double bound = std::min(wait, 2.2);
  shape.knee = c[6] + c[7] * bound * bound + c[8] * in.load;
  return shape;
}

TimePrior fit_time_prior(std::span<const LineOf> lines) {
  TimePrior c{};
  for (std::size_t k = 0; k < kTimePriorSize; ++k) c[k] = kBeliefs[k].mean;
  const std::vector<Sample> all = samples(lines);
  if (all.empty()) return c;
  double best = loss(c, all);
  double damping = 1e-3;
  Matrix h;
  Vector g;
  for (int round = 0; round < 60; ++round) {
    normal_equations(c, all, h, g);
    bool better = false;
    for (int tries = 0; tries < 8 && !better; ++tries) {
      Matrix damped = h;
      damped.diagonal() += damping * h.diagonal();
      const Vector step = damped.ldlt().solve(g);
      TimePrior t = c;
      for (std::size_t k = 0; k < kTimePriorSize; ++k) t[k] -= step[static_cast<Eigen::Index>(k)];
      const double now = loss(t, all);
      if (std::isfinite(now) && now < best) {
        better = best - now > 1e-9;
        best = now;
        c = t;
        damping = std::max(1e-6, damping / 4);
        if (!better) return c;
      } else {
        damping *= 6;
      }
    }
    if (!better) break;
  }
  return c;
}

}  // namespace gpoeo::model
