// SPDX-License-Identifier: Apache-2.0
// What a model that never saw the job expects of it. Where the suite has tables: one model for each
// family of workloads, from the tables without that family (DESIGN section 11: leave one out).
// Where its jobs are generated: the card's shipped model, which was trained on other generated jobs
// (docs/models.md).
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
  static Result<Priors> train(const Suite& suite);
  // Empty when there is no model for this subject, or none that is good enough to start from.
  control::Predict of(const Suite& suite, const Subject& subject) const;

 private:
  std::map<std::string, std::shared_ptr<const model::Predictor>> without_;  // by family left out
  std::map<std::string, std::shared_ptr<const model::Predictor>> shipped_;  // by name of the card
};

}  // namespace gpoeo::bench
