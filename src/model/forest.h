// SPDX-License-Identifier: Apache-2.0
// Boosted trees as flat arrays, read once from XGBoost's own JSON: loading takes milliseconds, a
// prediction well under a microsecond a tree, and no byte of a file ever reaches XGBoost's parser.
// Answers equal XGBoost's bit for bit (forest_test.cc). Thread rule: immutable once made.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "base/result.h"

namespace gpoeo::model {

class Forest {
 public:
  Forest() = default;
  // `booster`: what XGBoosterSaveModelToBuffer writes as JSON. kInvalid names what is wrong: a
  // child that does not come after its parent, a feature that does not exist, a number that is
  // none.
  static Result<Forest> from_xgboost(const nlohmann::json& booster, std::size_t features);

  // `booster` less all that a prediction does not need: a fifth of the bytes, and still in
  // XGBoost's own fields.
  static nlohmann::json essentials(const nlohmann::json& booster);

  // NaN is a missing value here, as in XGBoost.
  float predict(std::span<const float> features) const;
  std::size_t trees() const { return roots_.size(); }

 private:
  struct Node {
    float value = 0;  // threshold, or the leaf's answer
    std::int32_t feature = 0;
    std::int32_t left = -1;  // -1: a leaf
    std::int32_t right = -1;
    bool missing_left = false;
  };
  std::vector<Node> nodes_;
  std::vector<std::int32_t> roots_;
};

}  // namespace gpoeo::model
