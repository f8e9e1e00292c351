// SPDX-License-Identifier: Apache-2.0
#include "response/smooth.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/result.h"
#include "response/banded.h"

namespace gpoeo::response {
namespace {

constexpr std::size_t kFewestToSmooth = 6;
// The MAD of a normal sample times this is its standard deviation.
constexpr double kMadToSigma = 1.4826;
// Tukey's biweight at this many sigmas loses 5 % of efficiency on clean normal noise.
constexpr double kBiweight = 4.685;
constexpr double kLeastWeight = 1e-3;
// Weight under which a point says nothing about the noise.
constexpr double kOutlierWeight = 0.05;
// Axis steps below this share of the mean step count as this: keeps the system well conditioned.
constexpr double kLeastStep = 0.2;
constexpr double kMonotonePenalty = 1e6;
constexpr int kMaxRobustRounds = 12;
constexpr int kMaxMonotoneRounds = 50;

double median(std::vector<double> v) {
  const auto middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
  std::ranges::nth_element(v, middle);
  if (v.size() % 2 == 1) return *middle;
  return (*std::max_element(v.begin(), middle) + *middle) / 2;
}

double mad_sigma(std::vector<double> residuals) {
  for (double& r : residuals) r = std::abs(r);
  return kMadToSigma * median(std::move(residuals));
}

double biweight(double sigmas) {
  const double u = sigmas / kBiweight;
  if (std::abs(u) >= 1) return kLeastWeight;
  const double k = 1 - u * u;
  return std::max(kLeastWeight, k * k);
}

// Steps of the axis in units of their mean.
std::vector<double> unit_steps(std::span<const double> x) {
  const double mean = (x.back() - x.front()) / static_cast<double>(x.size() - 1);
  std::vector<double> steps(x.size() - 1);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    GPOEO_CHECK(x[i + 1] > x[i]);
    steps[i] = std::max(kLeastStep, (x[i + 1] - x[i]) / mean);
  }
  return steps;
}

// The roughness matrix P: z^T P z = sum_j h_j (second divided difference at j)^2, the discrete form
// of the integral of the squared second derivative.
BandedMatrix roughness(std::span<const double> steps) {
  const std::size_t n = steps.size() + 1;
  BandedMatrix p(n);
  for (std::size_t j = 1; j + 1 < n; ++j) {
    const double left = steps[j - 1];
    const double right = steps[j];
    const double a = 2 / (left * (left + right));
    const double c = 2 / (right * (left + right));
    const double b = -(a + c);
    const double h = (left + right) / 2;
    p.diagonal[j - 1] += h * a * a;
    p.diagonal[j] += h * b * b;
    p.diagonal[j + 1] += h * c * c;
    p.first[j - 1] += h * a * b;
    p.first[j] += h * b * c;
    p.second[j - 1] += h * a * c;
  }
  return p;
}

double quadratic_form(const BandedMatrix& p, std::span<const double> z) {
  double sum = 0;
  for (std::size_t i = 0; i < z.size(); ++i) {
    sum += p.diagonal[i] * z[i] * z[i];
    if (i + 1 < z.size()) sum += 2 * p.first[i] * z[i] * z[i + 1];
    if (i + 2 < z.size()) sum += 2 * p.second[i] * z[i] * z[i + 2];
  }
  return std::max(0.0, sum);
}

// What stays the same while weights and lambda are searched.
struct Problem {
  std::span<const double> y;
  BandedMatrix p;
  double least_noise;

  BandedMatrix system(std::span<const double> w, double lambda) const {
    BandedMatrix a(y.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
      a.diagonal[i] = w[i] + lambda * p.diagonal[i];
      a.first[i] = lambda * p.first[i];
      a.second[i] = lambda * p.second[i];
    }
    return a;
  }

  std::vector<double> right_side(std::span<const double> w) const {
    std::vector<double> b(y.size());
    for (std::size_t i = 0; i < y.size(); ++i) b[i] = w[i] * y[i];
    return b;
  }

  // Minus twice the restricted log likelihood, constants left out, with the noise profiled out.
  double reml(std::span<const double> w, double lambda) const {
    const BandedFactor factor(system(w, lambda));
    const std::vector<double> z = factor.solve(right_side(w));
    double fit = lambda * quadratic_form(p, z);
    double heard = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      fit += w[i] * (y[i] - z[i]) * (y[i] - z[i]);
      if (w[i] > kOutlierWeight) heard += 1;
    }
    const double freedom = std::max(1.0, heard - 2);
    const double variance = std::max(fit / freedom, least_noise * least_noise);
    return freedom * std::log(variance) + fit / variance + factor.log_determinant() -
           static_cast<double>(y.size() - 2) * std::log(lambda);
  }

  double best_lambda(std::span<const double> w) const {
    constexpr double kLowest = -4;  // decades; interpolates
    constexpr double kHighest = 8;  // a straight line for any length that we meet
    constexpr double kStep = 0.25;
    double best = 1;
    double best_value = std::numeric_limits<double>::infinity();
    for (double decade = kLowest; decade <= kHighest; decade += kStep) {
      const double lambda = std::pow(10.0, decade);
      const double value = reml(w, lambda);
      if (value < best_value) {
        best_value = value;
        best = lambda;
      }
    }
    return best;
  }
};

// Running median of five, with Tukey's rule at the ends: it drops up to two neighbouring outliers
// and keeps steps, and passes any monotone run unchanged.
std::vector<double> running_median(std::span<const double> y) {
  const std::size_t n = y.size();
  std::vector<double> m(n);
  for (std::size_t i = 1; i + 1 < n; ++i) {
    const std::size_t reach = std::min({std::size_t{2}, i, n - 1 - i});
    m[i] = median({y.begin() + static_cast<std::ptrdiff_t>(i - reach),
                   y.begin() + static_cast<std::ptrdiff_t>(i + reach + 1)});
  }
  m[0] = median({y[0], m[1], 3 * m[1] - 2 * m[2]});
  m[n - 1] = median({y[n - 1], m[n - 2], 3 * m[n - 2] - 2 * m[n - 3]});
  return m;
}

// Noise from each point's distance to the line through its neighbours: needs no fit.
double local_noise(std::span<const double> y, std::span<const double> steps) {
  std::vector<double> r;
  for (std::size_t i = 1; i + 1 < y.size(); ++i) {
    const double t = steps[i - 1] / (steps[i - 1] + steps[i]);
    const double line = y[i - 1] * (1 - t) + y[i + 1] * t;
    r.push_back((y[i] - line) / std::sqrt(1 + t * t + (1 - t) * (1 - t)));
  }
  return mad_sigma(std::move(r));
}

struct RobustFit {
  std::vector<double> w;
  double lambda = 0;
  double noise = 0;
};

RobustFit robust_fit(const Problem& problem, std::span<const double> steps) {
  const std::span<const double> y = problem.y;
  const std::size_t n = y.size();
  const std::vector<double> pilot = running_median(y);
  RobustFit fit{.w = std::vector<double>(n),
                .lambda = 0,
                .noise = std::max(problem.least_noise, local_noise(y, steps))};
  for (std::size_t i = 0; i < n; ++i) fit.w[i] = biweight((y[i] - pilot[i]) / fit.noise);
  for (int round = 0; round < kMaxRobustRounds; ++round) {
    fit.lambda = problem.best_lambda(fit.w);
    const BandedFactor factor(problem.system(fit.w, fit.lambda));
    const std::vector<double> z = factor.solve(problem.right_side(fit.w));
    const std::vector<double> spread = factor.inverse_diagonal();
    std::vector<double> r(n);
    for (std::size_t i = 0; i < n; ++i) {
      // A point pulls the fit towards itself by its leverage.
      const double leverage = std::clamp(fit.w[i] * spread[i], 0.0, 0.95);
      r[i] = (y[i] - z[i]) / std::sqrt(1 - leverage);
    }
    fit.noise = std::max(problem.least_noise, mad_sigma(r));
    double change = 0;
    for (std::size_t i = 0; i < n; ++i) {
      // Only what both the curve and its own neighbourhood disown is an outlier: a point beside a
      // step is far from the curve, but not from the running median.
      const double distance = std::min(std::abs(r[i]), std::abs(y[i] - pilot[i]));
      const double w = biweight(distance / fit.noise);
      change = std::max(change, std::abs(w - fit.w[i]));
      fit.w[i] = w;
    }
    if (change < 0.01) break;
  }
  return fit;
}

std::vector<double> solve_non_increasing(const Problem& problem, const RobustFit& fit) {
  const std::size_t n = problem.y.size();
  const std::vector<double> b = problem.right_side(fit.w);
  std::vector<bool> rises(n - 1, false);
  std::vector<double> z;
  for (int round = 0; round < kMaxMonotoneRounds; ++round) {
    BandedMatrix a = problem.system(fit.w, fit.lambda);
    for (std::size_t i = 0; i + 1 < n; ++i) {
      if (!rises[i]) continue;
      a.diagonal[i] += kMonotonePenalty;
      a.diagonal[i + 1] += kMonotonePenalty;
      a.first[i] -= kMonotonePenalty;
    }
    z = BandedFactor(a).solve(b);
    bool changed = false;
    for (std::size_t i = 0; i + 1 < n; ++i) {
      const bool now = z[i + 1] > z[i];
      changed = changed || now != rises[i];
      rises[i] = now;
    }
    if (!changed) break;
  }
  return pool_non_increasing(z, fit.w);
}

}  // namespace

std::vector<double> pool_non_increasing(std::span<const double> y,
                                        std::span<const double> weights) {
  GPOEO_CHECK(y.size() == weights.size());
  struct Block {
    double mean, weight;
    std::size_t count;
  };
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < y.size(); ++i) {
    blocks.push_back({y[i], weights[i], 1});
    while (blocks.size() > 1 && blocks.back().mean > blocks[blocks.size() - 2].mean) {
      const Block last = blocks.back();
      blocks.pop_back();
      Block& into = blocks.back();
      const double weight = into.weight + last.weight;
      into.mean = (into.mean * into.weight + last.mean * last.weight) / weight;
      into.weight = weight;
      into.count += last.count;
    }
  }
  std::vector<double> z;
  for (const Block& block : blocks) z.insert(z.end(), block.count, block.mean);
  return z;
}

Smoothed smooth(std::span<const double> x, std::span<const double> y,
                const SmoothOptions& options) {
  GPOEO_CHECK(!x.empty() && x.size() == y.size());
  Smoothed result{.z = {y.begin(), y.end()},
                  .weights = std::vector<double>(y.size(), 1.0),
                  .noise = 0,
                  .lambda = 0};
  if (x.size() < kFewestToSmooth) {
    if (options.shape == Shape::kNonIncreasing) {
      result.z = pool_non_increasing(y, result.weights);
    }
    return result;
  }
  const std::vector<double> steps = unit_steps(x);
  const Problem problem{.y = y, .p = roughness(steps), .least_noise = options.least_noise};
  RobustFit fit = robust_fit(problem, steps);
  result.z = options.shape == Shape::kNonIncreasing
                 ? solve_non_increasing(problem, fit)
                 : BandedFactor(problem.system(fit.w, fit.lambda)).solve(problem.right_side(fit.w));
  result.weights = std::move(fit.w);
  result.noise = fit.noise;
  result.lambda = fit.lambda;
  return result;
}

}  // namespace gpoeo::response
