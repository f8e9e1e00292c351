// SPDX-License-Identifier: Apache-2.0
// When a job's iterations are steady enough to be measured: compilation, autotuning and cache
// filling come before. Pure.
#pragma once

#include <span>
#include <vector>

#include "base/clock.h"

namespace gpoeo::control {

class WarmUp {
 public:
  void add(std::span<const Instant> ends) { ends_.insert(ends_.end(), ends.begin(), ends.end()); }
  // A few iterations in a row took about as long as as many before them, or waiting is of no use.
  bool over() const;
  std::span<const Instant> ends() const { return ends_; }
  void restart() { ends_.clear(); }

 private:
  std::vector<Instant> ends_;
};

}  // namespace gpoeo::control
