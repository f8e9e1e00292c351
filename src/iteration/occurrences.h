// SPDX-License-Identifier: Apache-2.0
// Where each distinct run of launches occurs in a piece of a launch log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "iteration/launch_marks.h"

namespace gpoeo::iteration {

class Occurrences {
 public:
  // Runs of kRunLengths[run] launches. At most 2^32 - 2 launches. O(n).
  Occurrences(std::span<const Launch> launches, std::size_t run);

  std::size_t size() const { return keys_.size(); }  // distinct runs
  std::uint64_t key(std::size_t i) const { return keys_[i]; }
  // Index of the last launch of each occurrence, rising.
  std::span<const std::uint32_t> at(std::size_t i) const {
    return std::span(positions_).subspan(starts_[i], starts_[i + 1] - starts_[i]);
  }

 private:
  std::vector<std::uint64_t> keys_;
  std::vector<std::uint32_t> starts_;     // into positions_, one more than keys
  std::vector<std::uint32_t> positions_;  // grouped by key
};

}  // namespace gpoeo::iteration
