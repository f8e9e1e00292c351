// SPDX-License-Identifier: Apache-2.0
#include "policy/posterior.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace gpoeo::policy {
namespace {

// Of the job's own level: unknown. ln: a factor of e either way, and evidence settles it.
constexpr double kLevelVariance = 1.0;

// Scales of the drift's variance that are weighed, and what each is thought likely beforehand.
struct DriftScale {
  double variance, weight;
};
constexpr std::array kDriftScales = {DriftScale{0.25, 0.2}, DriftScale{1, 0.5}, DriftScale{4, 0.2},
                                     DriftScale{16, 0.1}};

Eigen::Index eigen(std::size_t i) { return static_cast<Eigen::Index>(i); }
double root(double variance) { return std::sqrt(std::max(0.0, variance)); }

// Mean of the drift's variance over the usual, by how likely each scale makes `y`. Only lower
// triangles count.
double likely_drift(const Eigen::MatrixXd& still, const Eigen::MatrixXd& drift,
                    const Eigen::VectorXd& y) {
  std::array<double, kDriftScales.size()> likelihood{};
  for (std::size_t s = 0; s < kDriftScales.size(); ++s) {
    const Eigen::LLT<Eigen::MatrixXd> llt(still + kDriftScales[s].variance * drift);
    const double fit = llt.matrixL().solve(y).squaredNorm();
    const double volume = llt.matrixLLT().diagonal().array().log().sum();
    likelihood[s] = std::log(kDriftScales[s].weight) - 0.5 * fit - volume;
  }
  const double most = std::ranges::max(likelihood);
  double weights = 0;
  double variance = 0;
  for (std::size_t s = 0; s < kDriftScales.size(); ++s) {
    const double weight = std::exp(likelihood[s] - most);
    weights += weight;
    variance += weight * kDriftScales[s].variance;
  }
  return variance / weights;
}

}  // namespace

Posterior::Posterior(std::unique_ptr<const ResponsePrior> prior, std::size_t candidates,
                     std::span<const Evidence> evidence, double Evidence::*value,
                     double Evidence::*variance)
    : prior_(std::move(prior)) {
  const std::size_t n = evidence.size();
  std::vector<std::size_t> measured;
  for (const Evidence& e : evidence) {
    drifts_.push_back(drift_mean(e));
    const auto at = std::ranges::find(measured, e.candidate);
    row_of_.push_back(at - measured.begin());
    if (at == measured.end()) measured.push_back(e.candidate);
  }
  rows_.resize(eigen(measured.size()), eigen(candidates));
  for (std::size_t r = 0; r < measured.size(); ++r) {
    for (std::size_t c = 0; c < candidates; ++c) {
      rows_(eigen(r), eigen(c)) = prior_->covariance(measured[r], c);
    }
  }
  for (std::size_t c = 0; c < candidates; ++c) with_default_.push_back(prior_->covariance(c, 0));

  Eigen::MatrixXd still = Eigen::MatrixXd::Zero(eigen(n), eigen(n)), drift = still;
  Eigen::VectorXd y(eigen(n));
  for (std::size_t i = 0; i < n; ++i) {
    y(eigen(i)) =
        evidence[i].*value - evidence.front().*value - prior_->mean(evidence[i].candidate);
    for (std::size_t j = 0; j <= i; ++j) {
      still(eigen(i), eigen(j)) = kLevelVariance + prior_covariance(i, evidence[j].candidate) +
                                  (i == j ? evidence[i].*variance : 0);
      drift(eigen(i), eigen(j)) = drift_covariance(drifts_[i], drifts_[j]);
    }
  }
  drift_variance_ = likely_drift(still, drift, y);
  llt_.compute(still + drift_variance_ * drift);

  Eigen::MatrixXd cross(eigen(n), eigen(candidates));
  for (std::size_t i = 0; i < n; ++i) {
    cross.row(eigen(i)) = rows_.row(row_of_[i]).array() - rows_(row_of_[i], 0);
  }
  shift_ = cross.transpose() * llt_.solve(y);
  explained_ = llt_.matrixL().solve(cross);
  for (std::size_t c = 0; c < candidates; ++c) variances_.push_back(covariance(c, c));
}

double Posterior::mean(std::size_t c) const {
  return prior_->mean(c) - prior_->mean(0) + shift_(eigen(c));
}

double Posterior::covariance(std::size_t a, std::size_t b) const {
  const double before =
      prior_->covariance(a, b) - with_default_[a] - with_default_[b] + with_default_[0];
  return before - explained_.col(eigen(a)).dot(explained_.col(eigen(b)));
}

double Posterior::error(std::size_t c) const { return root(variances_[c]); }

double Posterior::contrast_variance(std::size_t a, std::size_t b) const {
  if (a == b) return 0;
  return variances_[a] + variances_[b] - 2 * covariance(a, b);
}

Lesson Posterior::lesson(const Evidence& look) const {
  const std::size_t k = look.candidate;
  const DriftMean drift = drift_mean(look);
  Eigen::VectorXd with_look(eigen(drifts_.size()));
  for (std::size_t i = 0; i < drifts_.size(); ++i) {
    with_look(eigen(i)) = kLevelVariance + prior_covariance(i, k) +
                          drift_variance_ * drift_covariance(drifts_[i], drift);
  }
  const Eigen::VectorXd known = llt_.matrixL().solve(with_look);
  const Eigen::VectorXd told = explained_.transpose() * known;
  Lesson lesson{.covariance = {},
                .variance = std::max(0.0, kLevelVariance + prior_->covariance(k, k) +
                                              drift_variance_ * drift_covariance(drift, drift) -
                                              known.squaredNorm())};
  for (std::size_t c = 0; c < with_default_.size(); ++c) {
    lesson.covariance.push_back(prior_->covariance(c, k) - with_default_[k] - told(eigen(c)));
  }
  return lesson;
}

}  // namespace gpoeo::policy
