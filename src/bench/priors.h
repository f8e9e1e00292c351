// SPDX-License-Identifier: Apache-2.0
// What a model that never saw the job expects of it: one model for each family of workloads, from
// the suite's tables without that family (DESIGN section 11: leave one out).
//
// Thread rule: immutable once trained; the functions may be called from any thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/suite.h"
#include "control/profile_stage.h"
#include "model/predictor.h"
#include "policy/policy.h"

namespace gpoeo::bench {

class Priors {
 public:
  // No model where the suite has no tables of clocks to learn from.
  static Result<Priors> train(const Suite& suite);
  // Empty when there is no model for this subject, or none that is good enough to start from.
  control::Predict of(const Suite& suite, const Subject& subject) const;

 private:
  std::map<std::string, std::shared_ptr<const model::Predictor>> without_;  // by family left out
};

}  // namespace gpoeo::bench
