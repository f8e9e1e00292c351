// SPDX-License-Identifier: Apache-2.0
#include "iteration/occurrences.h"

#include <bit>

namespace gpoeo::iteration {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

// Keys to dense numbers, open addressing, grows by doubling.
class KeyNumbers {
 public:
  explicit KeyNumbers(std::vector<std::uint64_t>& keys) : keys_(keys), slots_(1024, kNone) {}

  std::uint32_t number(std::uint64_t key) {
    if (keys_.size() * 2 >= slots_.size()) grow();
    const std::size_t slot = find(key);
    if (slots_[slot] == kNone) {
      slots_[slot] = static_cast<std::uint32_t>(keys_.size());
      keys_.push_back(key);
    }
    return slots_[slot];
  }

 private:
  std::size_t find(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = key & mask;
    while (slots_[slot] != kNone && keys_[slots_[slot]] != key) slot = (slot + 1) & mask;
    return slot;
  }
  void grow() {
    slots_.assign(slots_.size() * 2, kNone);
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      slots_[find(keys_[i])] = static_cast<std::uint32_t>(i);
    }
  }

  std::vector<std::uint64_t>& keys_;
  std::vector<std::uint32_t> slots_;
};

}  // namespace

Occurrences::Occurrences(std::span<const Launch> launches, std::size_t run) {
  std::vector<std::uint32_t> number_at(launches.size(), kNone);
  {
    KeyNumbers numbers(keys_);
    RunHasher hasher;
    for (std::size_t i = 0; i < launches.size(); ++i) {
      hasher.push(launches[i].stream, launches[i].id);
      if (const auto key = hasher.key(run)) number_at[i] = numbers.number(*key);
    }
  }
  starts_.assign(keys_.size() + 1, 0);
  for (const std::uint32_t number : number_at) {
    if (number != kNone) ++starts_[number + 1];
  }
  for (std::size_t i = 0; i < keys_.size(); ++i) starts_[i + 1] += starts_[i];
  positions_.resize(starts_.back());
  std::vector<std::uint32_t> next(starts_.begin(), starts_.end() - 1);
  for (std::size_t i = 0; i < number_at.size(); ++i) {
    if (number_at[i] != kNone) positions_[next[number_at[i]]++] = static_cast<std::uint32_t>(i);
  }
}

}  // namespace gpoeo::iteration
