// SPDX-License-Identifier: Apache-2.0
// XGBoost through its C API, as this module trains with it: one thread, a fixed seed, exact splits,
// gradients given by the caller (they come through the response's own formula) or squared error.
// Thread rule: one object, one thread. Errors: kInvalid with XGBoost's own words.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace gpoeo::model {

// Rows of floats; NaN = missing.
class Rows {
 public:
  static Result<Rows> make(std::span<const float> values, std::size_t rows, std::size_t columns);
  std::size_t count() const { return count_; }
  Status set_labels(std::span<const float> labels);
  void* handle() const { return handle_.get(); }

 private:
  std::shared_ptr<void> handle_;
  std::size_t count_ = 0;
};

struct BoosterOptions {
  int depth = 3;
  double rate = 0.1;
  double ridge = 8;         // on leaf values
  double least_weight = 1;  // of a leaf, in units of the hessian
  double rows = 1;          // share of rows a tree sees
  double columns = 1;
};

class Booster {
 public:
  static Result<Booster> make(const Rows& rows, const BoosterOptions& options);
  // One more tree along these gradients.
  Status boost(const Rows& rows, std::span<const float> gradient, std::span<const float> hessian);
  // One more tree on the rows' labels, squared error.
  Status update(const Rows& rows, int round);
  Result<std::vector<float>> predict(const Rows& rows) const;
  Result<std::string> to_json() const;

 private:
  std::shared_ptr<void> handle_;
};

}  // namespace gpoeo::model
