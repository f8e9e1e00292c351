// SPDX-License-Identifier: Apache-2.0
#include "response/penalised_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/result.h"

namespace gpoeo::response {
namespace {

// Under this weight a point says nothing about the noise.
constexpr double kHeardWeight = 0.05;

double quadratic_form(const BandedMatrix& p, std::span<const double> z) {
  double sum = 0;
  for (std::size_t i = 0; i < z.size(); ++i) {
    sum += p.diagonal[i] * z[i] * z[i];
    if (i + 1 < z.size()) sum += 2 * p.first[i] * z[i] * z[i + 1];
    if (i + 2 < z.size()) sum += 2 * p.second[i] * z[i] * z[i + 2];
  }
  return std::max(0.0, sum);  // rounding
}

}  // namespace

PenalisedFit::PenalisedFit(std::span<const double> y, std::span<const double> steps,
                           double least_noise)
    : y_(y.begin(), y.end()),
      steps_(steps.begin(), steps.end()),
      w_(y.size(), 1.0),
      roughness_(y.size()),
      least_noise_(least_noise) {
  GPOEO_CHECK(y.size() >= 3 && steps.size() + 1 == y.size());
  // A stiff fit is ill conditioned in everything that costs nothing, so keep the level out of it.
  level_ = y[y.size() / 2];
  for (double& v : y_) v -= level_;
  set_stiffness(w_);
}

void PenalisedFit::set_stiffness(std::span<const double> s) {
  GPOEO_CHECK(s.size() == y_.size());
  BandedMatrix p(y_.size());
  for (std::size_t j = 1; j + 1 < y_.size(); ++j) {
    const double left = steps_[j - 1];
    const double right = steps_[j];
    const double a = 2 / (left * (left + right));
    const double c = 2 / (right * (left + right));
    const double b = -(a + c);
    const double h = s[j] * (left + right) / 2;
    p.diagonal[j - 1] += h * a * a;
    p.diagonal[j] += h * b * b;
    p.diagonal[j + 1] += h * c * c;
    p.first[j - 1] += h * a * b;
    p.first[j] += h * b * c;
    p.second[j - 1] += h * a * c;
  }
  roughness_ = std::move(p);
}

BandedMatrix PenalisedFit::system(double lambda) const {
  BandedMatrix a(y_.size());
  for (std::size_t i = 0; i < y_.size(); ++i) {
    a.diagonal[i] = w_[i] + lambda * roughness_.diagonal[i];
    a.first[i] = lambda * roughness_.first[i];
    a.second[i] = lambda * roughness_.second[i];
  }
  return a;
}

std::vector<double> PenalisedFit::right_side() const {
  std::vector<double> b(y_.size());
  for (std::size_t i = 0; i < y_.size(); ++i) b[i] = w_[i] * y_[i];
  return b;
}

// Minus twice its logarithm; what does not depend on lambda is left out.
double PenalisedFit::restricted_likelihood(double lambda) const {
  const BandedFactor factor(system(lambda));
  const std::vector<double> z = factor.solve(right_side());
  double misfit = lambda * quadratic_form(roughness_, z);
  double heard = 0;
  for (std::size_t i = 0; i < y_.size(); ++i) {
    misfit += w_[i] * (y_[i] - z[i]) * (y_[i] - z[i]);
    if (w_[i] > kHeardWeight) heard += 1;
  }
  const double freedom = std::max(1.0, heard - 2);
  // Exact data would have no variance at all; a thousandth of the least noise is exact enough.
  const double variance = std::max(misfit / freedom, 1e-6 * least_noise_ * least_noise_);
  return freedom * std::log(variance) + misfit / variance + factor.log_determinant() -
         static_cast<double>(y_.size() - 2) * std::log(lambda);
}

void PenalisedFit::choose_lambda() {
  constexpr int kLowest = -16;  // quarter decades; interpolates
  constexpr int kHighest = 32;  // a straight line for any length that we meet
  double least = std::numeric_limits<double>::infinity();
  for (int i = kLowest; i <= kHighest; ++i) {
    const double lambda = std::pow(10.0, i / 4.0);
    const double value = restricted_likelihood(lambda);
    if (value < least) {
      least = value;
      lambda_ = lambda;
    }
  }
}

std::vector<double> PenalisedFit::solve() const {
  std::vector<double> z = BandedFactor(system(lambda_)).solve(right_side());
  for (double& v : z) v += level_;
  return z;
}

std::vector<double> PenalisedFit::leverage() const {
  std::vector<double> h = BandedFactor(system(lambda_)).inverse_diagonal();
  for (std::size_t i = 0; i < h.size(); ++i) h[i] = std::clamp(h[i] * w_[i], 0.0, 1.0);
  return h;
}

}  // namespace gpoeo::response
