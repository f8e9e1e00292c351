// SPDX-License-Identifier: Apache-2.0
// What is believed about a job's response to its clocks, from a prior and the evidence: of ln(time)
// and ln(power), each relative to default clocks (posterior.h). An interleaved baseline, a
// neighbouring clock and a stay of ten minutes all count for exactly what they tell. Time is made
// monotone afterwards: it never falls when the SM clock does.
//
// Cost: n blocks (at most 48) and m candidates: n^3 + n^2 m multiplications.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "policy/candidates.h"
#include "policy/evidence.h"
#include "policy/policy.h"

namespace gpoeo::policy {

class Posterior;
struct Lesson;

// Natural logarithms of ratios over default clocks, with standard errors.
struct Belief {
  double time = 0;
  double time_error = 0;
  double power = 0;
  double power_error = 0;
};

// Thread rule: immutable once built.
class ResponseBelief {
 public:
  // `evidence` holds at least one block, at any setting; `candidates` must outlive the belief.
  ResponseBelief(const Problem& problem, std::span<const Candidate> candidates,
                 std::span<const Evidence> evidence);
  ~ResponseBelief();
  ResponseBelief(const ResponseBelief&) = delete;
  ResponseBelief& operator=(const ResponseBelief&) = delete;

  std::size_t size() const { return beliefs_.size(); }
  // candidates[0] is the default, believed to be exactly 0.
  const Belief& operator[](std::size_t k) const { return beliefs_[k]; }
  // Standard error of (time_weight ln time + ln power) at `a` over that at `b`: neighbours err
  // together, so this is far less than either's own error.
  double contrast_error(std::size_t a, std::size_t b, double time_weight) const;
  // What a look at `look.candidate` would teach, at its time and as long as it says (posterior.h).
  Lesson time_lesson(const Evidence& look) const;
  Lesson power_lesson(const Evidence& look) const;

 private:
  std::unique_ptr<const Posterior> time_, power_;
  std::vector<Belief> beliefs_;
  std::vector<std::size_t> lines_;  // the candidates'
};

}  // namespace gpoeo::policy
