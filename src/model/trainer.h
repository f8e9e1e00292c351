// SPDX-License-Identifier: Apache-2.0
// Trains a predictor. The number of boosting rounds (none is an answer) and the errors are found
// by cross-validation over families; seeds, threads and order are fixed, so that the same set
// gives the same bytes on one machine. Thread rule: pure, single-threaded; slow (seconds).
#pragma once

#include <functional>
#include <span>
#include <string>

#include "base/result.h"
#include "model/dataset.h"
#include "model/predictor.h"

namespace gpoeo::model {

struct TrainOptions {
  std::string device = "any";  // the GPU the model is for, as its driver prints the name
  std::string gpoeo_version = "unknown";
  int folds = 6;                                       // at most; each holds out whole families
  int rounds = 200;                                    // of boosting, at most
  bool trees = true;                                   // false: the physical prior alone
  std::function<void(const std::string&)> progress{};  // one line at a time
};

// kInvalid for fewer than four families.
Result<Predictor> train(const Dataset& dataset, const TrainOptions& options);
// Never sees a workload of these families, in no step of the training.
Result<Predictor> train_excluding(const Dataset& dataset, std::span<const std::string> families,
                                  const TrainOptions& options);

}  // namespace gpoeo::model
