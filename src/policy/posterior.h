// SPDX-License-Identifier: Apache-2.0
// What evidence makes of a prior, for one quantity (ln of time or of power): a Gaussian process.
//
//   ln y of a block = level of the job + g(setting) + drift(time) + noise
// g has the prior's mean and covariance, the level is unknown, drift as in drift.h times a scale
// that is estimated from the evidence itself: the mean over a few scales, weighted by how likely
// each makes what was seen (a job may wander more than is usual, and then less is certain).
// All results are of g(candidate) - g(default).
#pragma once

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "policy/drift.h"
#include "policy/evidence.h"
#include "policy/response_prior.h"

namespace gpoeo::policy {

// What a look would teach, its reading left open: its covariance with each candidate, and its own
// variance before noise of measuring. At one standard error of what is read the mean of a candidate
// moves by covariance / sqrt(variance + noise).
struct Lesson {
  std::vector<double> covariance;
  double variance = 0;
};

// Thread rule: immutable once built.
class Posterior {
 public:
  // `evidence` holds at least one block. `value` and `variance` say which quantity.
  Posterior(std::unique_ptr<const ResponsePrior> prior, std::size_t candidates,
            std::span<const Evidence> evidence, double Evidence::*value,
            double Evidence::*variance);

  double mean(std::size_t c) const;
  double error(std::size_t c) const;  // standard error
  // Variance of g(a) - g(b).
  double contrast_variance(std::size_t a, std::size_t b) const;

  Lesson lesson(const Evidence& look) const;

 private:
  double covariance(std::size_t a, std::size_t b) const;
  double prior_covariance(std::size_t block, std::size_t candidate) const {
    return rows_(row_of_[block], static_cast<Eigen::Index>(candidate));
  }

  std::unique_ptr<const ResponsePrior> prior_;
  std::vector<DriftMean> drifts_;  // of each block
  double drift_variance_ = 1;      // over the usual
  Eigen::MatrixXd rows_;           // prior covariance of each setting measured with each candidate
  std::vector<Eigen::Index> row_of_;  // for each block
  std::vector<double> with_default_;  // prior covariance of each candidate with the default
  std::vector<double> variances_;     // posterior
  Eigen::LLT<Eigen::MatrixXd> llt_;
  Eigen::VectorXd shift_;
  Eigen::MatrixXd explained_;  // columns: what the evidence tells of each candidate
};

}  // namespace gpoeo::policy
