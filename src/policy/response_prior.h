// SPDX-License-Identifier: Apache-2.0
// What is believed of a job's response before anything is measured: for ln(time) and for ln(power),
// up to a constant, a mean at each candidate and a covariance between any two.
//
// Without a model: a wide prior of the shapes that cards have. With one (Problem::prior speaks of
// each candidate): its predictions, with errors of its own size, wider when the evidence surprises
// it.
#pragma once

#include <memory>
#include <span>

#include "policy/candidates.h"
#include "policy/evidence.h"
#include "policy/policy.h"

namespace gpoeo::policy {

// Thread rule: immutable.
class ResponsePrior {
 public:
  virtual ~ResponsePrior() = default;
  virtual double mean(std::size_t candidate) const = 0;
  virtual double covariance(std::size_t a, std::size_t b) const = 0;
};

struct ResponsePriors {
  std::unique_ptr<const ResponsePrior> time, power;
};
// `candidates` must outlive them.
ResponsePriors response_priors(const Problem& problem, std::span<const Candidate> candidates,
                               std::span<const Evidence> evidence);

}  // namespace gpoeo::policy
