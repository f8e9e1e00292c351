// SPDX-License-Identifier: Apache-2.0
#include "iteration/turn_counter.h"

#include <algorithm>

namespace gpoeo::iteration {
namespace {

// Share of the marks that a repeat must have shown: more than a validation, which has those of the
// forward pass, can show.
constexpr double kMost = 0.7;

}  // namespace

bool TurnCounter::most_seen() const {
  if (seen_.size() < 4) return 2 * count_ > seen_.size();
  return static_cast<double>(count_) >= kMost * static_cast<double>(seen_.size());
}

bool TurnCounter::on_mark(std::size_t which) {
  bool ended = false;
  if (seen_[which]) {
    if (!most_seen()) return false;
    ended = true;
    seen_.assign(seen_.size(), false);
    count_ = 0;
  }
  seen_[which] = true;
  ++count_;
  if (which + 1 == seen_.size() && most_seen()) {
    ended = true;
    seen_.assign(seen_.size(), false);
    count_ = 0;
  }
  return ended;
}

bool TurnCounter::on_stream_end() {
  const std::size_t may_miss = std::max<std::size_t>(seen_.size() >= 4 ? 1 : 0, seen_.size() / 10);
  const bool whole = count_ + may_miss >= seen_.size();
  seen_.assign(seen_.size(), false);
  count_ = 0;
  return whole;
}

}  // namespace gpoeo::iteration
