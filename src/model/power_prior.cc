// SPDX-License-Identifier: Apache-2.0
#include "model/power_prior.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

namespace gpoeo::model {
namespace {

constexpr int kGrid = 40;
// Chosen on the A100 set by leave-one-out among lengths 1, 1.5 and noises 0.03, 0.1.
constexpr double kLength = 1.0;
constexpr double kNoise = 0.03;
constexpr std::size_t kMostPoints = 400;

// Piecewise linear through (xs, ys), straight on beyond the ends.
double interpolate(const std::vector<double>& xs, const std::vector<double>& ys, double at) {
  if (xs.size() == 1) return ys.front();
  const auto above = std::upper_bound(xs.begin() + 1, xs.end() - 1, at);
  const auto i = static_cast<std::size_t>(above - xs.begin());
  const double share = (at - xs[i - 1]) / (xs[i] - xs[i - 1]);
  return ys[i - 1] + share * (ys[i] - ys[i - 1]);
}

Eigen::VectorXd on_grid(const std::vector<double>& grid, const Line& line) {
  Eigen::VectorXd v(static_cast<Eigen::Index>(grid.size()));
  const double low = line.sm_slowdown.front();
  const double high = line.sm_slowdown.back();
  for (std::size_t i = 0; i < grid.size(); ++i)
    // A line that does not reach the grid's ends keeps its own end's value there.
    v[static_cast<Eigen::Index>(i)] =
        interpolate(line.sm_slowdown, line.log_power, std::clamp(grid[i], low, high));
  return v;
}

double kernel(const KernelPoint& a, const KernelPoint& b) {
  double sum = 0;
  for (std::size_t k = 0; k < kKernelInputs; ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
  return std::exp(-sum / (2 * kLength * kLength * 3));
}

void standardise(PowerKernel& kernel_fit, const std::vector<KernelPoint>& raw) {
  const double n = static_cast<double>(raw.size());
  for (std::size_t k = 0; k < kKernelInputs; ++k) {
    double mean = 0, square = 0;
    for (const KernelPoint& p : raw) mean += p[k] / n;
    for (const KernelPoint& p : raw) square += (p[k] - mean) * (p[k] - mean) / n;
    kernel_fit.centre[k] = mean;
    kernel_fit.scale[k] = square > 1e-12 ? std::sqrt(square) : 1.0;
  }
}

KernelPoint standardised(const PowerKernel& fit, const KernelPoint& raw) {
  KernelPoint p{};
  for (std::size_t k = 0; k < kKernelInputs; ++k) p[k] = (raw[k] - fit.centre[k]) / fit.scale[k];
  return p;
}

}  // namespace

double PowerBasis::log_power(const PowerScores& scores, double at) const {
  double value = interpolate(x, mean, at);
  for (int c = 0; c < kPowerCurves; ++c)
    value += scores[static_cast<std::size_t>(c)] *
             interpolate(x, curves[static_cast<std::size_t>(c)], at);
  return value;
}

PowerScores PowerBasis::project(const Line& line) const {
  const Eigen::VectorXd v = on_grid(x, line);
  PowerScores scores{};
  for (std::size_t c = 0; c < scores.size(); ++c)
    for (std::size_t i = 0; i < x.size(); ++i)
      scores[c] += (v[static_cast<Eigen::Index>(i)] - mean[i]) * curves[c][i];
  return scores;
}

PowerBasis make_power_basis(std::span<const LineOf> lines) {
  PowerBasis basis;
  double low = 1, high = 1;
  for (const LineOf& l : lines) {
    low = std::min(low, l.line->sm_slowdown.front());
    high = std::max(high, l.line->sm_slowdown.back());
  }
  // Even in the clock: the voltage curve bends there.
  for (int i = 0; i < kGrid; ++i)
    basis.x.push_back(1 / (1 / low + (1 / high - 1 / low) * i / (kGrid - 1)));
  Eigen::MatrixXd all(static_cast<Eigen::Index>(lines.size()), kGrid);
  for (std::size_t l = 0; l < lines.size(); ++l)
    all.row(static_cast<Eigen::Index>(l)) = on_grid(basis.x, *lines[l].line);
  const Eigen::RowVectorXd mean = all.colwise().mean();
  all.rowwise() -= mean;
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(all.transpose() * all);
  basis.mean.assign(mean.data(), mean.data() + kGrid);
  for (int c = 0; c < kPowerCurves; ++c) {
    Eigen::VectorXd curve = eigen.eigenvectors().col(kGrid - 1 - c);
    if (curve.sum() < 0) curve = -curve;  // a sign that does not depend on the solver
    basis.curves[static_cast<std::size_t>(c)].assign(curve.data(), curve.data() + kGrid);
  }
  return basis;
}

KernelPoint kernel_point(const Features& f, double memory_slowdown) {
  return {
      std::log(f.or_else(Feature::kPowerFraction, 0.5)), f.or_else(Feature::kDramActive, 0),
      std::sqrt(std::max(0.0, f[Feature::kSmActive].value_or(f.or_else(Feature::kUtilization, 0)))),
      std::log(memory_slowdown)};
}

PowerScores PowerKernel::predict(const KernelPoint& at) const {
  const KernelPoint p = standardised(*this, at);
  PowerScores scores{};
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double k = kernel(p, points[i]);
    for (std::size_t c = 0; c < scores.size(); ++c) scores[c] += k * weights[i][c];
  }
  return scores;
}

PowerKernel fit_power_kernel(std::span<const LineOf> lines, const PowerBasis& basis,
                             std::vector<PowerScores>* held_out) {
  PowerKernel fit;
  std::vector<KernelPoint> raw;
  std::vector<std::size_t> used;
  const std::size_t step = std::max<std::size_t>(1, (lines.size() + kMostPoints - 1) / kMostPoints);
  for (std::size_t i = 0; i < lines.size(); i += step) {
    used.push_back(i);
    raw.push_back(kernel_point(lines[i].example->features, lines[i].line->memory_slowdown));
  }
  standardise(fit, raw);
  for (const KernelPoint& p : raw) fit.points.push_back(standardised(fit, p));
  const auto n = static_cast<Eigen::Index>(used.size());
  Eigen::MatrixXd k(n, n);
  Eigen::MatrixXd y(n, kPowerCurves);
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j < n; ++j)
      k(i, j) =
          kernel(fit.points[static_cast<std::size_t>(i)], fit.points[static_cast<std::size_t>(j)]);
    k(i, i) += kNoise;
    const PowerScores s = basis.project(*lines[used[static_cast<std::size_t>(i)]].line);
    for (int c = 0; c < kPowerCurves; ++c) y(i, c) = s[static_cast<std::size_t>(c)];
  }
  const Eigen::MatrixXd inverse = k.llt().solve(Eigen::MatrixXd::Identity(n, n));
  const Eigen::MatrixXd weights = inverse * y;
  for (Eigen::Index i = 0; i < n; ++i)
    fit.weights.push_back({weights(i, 0), weights(i, 1), weights(i, 2)});
  if (!held_out) return fit;
  // Leave-one-family-out in closed form: y_f - K_f,rest (K_rest)^-1 y_rest = (K^-1)_ff^-1 w_f.
  held_out->assign(lines.size(), PowerScores{});
  std::map<std::string, std::vector<Eigen::Index>> families;
  for (Eigen::Index i = 0; i < n; ++i)
    families[lines[used[static_cast<std::size_t>(i)]].example->family].push_back(i);
  for (const auto& [name, members] : families) {
    const Eigen::MatrixXd block = inverse(members, members);
    const Eigen::MatrixXd residual = block.llt().solve(weights(members, Eigen::all).eval());
    for (std::size_t m = 0; m < members.size(); ++m)
      for (int c = 0; c < kPowerCurves; ++c)
        (*held_out)[used[static_cast<std::size_t>(members[m])]][static_cast<std::size_t>(c)] =
            y(members[m], c) - residual(static_cast<Eigen::Index>(m), c);
  }
  if (step > 1)
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (i % step != 0)
        (*held_out)[i] =
            fit.predict(kernel_point(lines[i].example->features, lines[i].line->memory_slowdown));
  return fit;
}

}  // namespace gpoeo::model
