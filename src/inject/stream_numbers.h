// SPDX-License-Identifier: Apache-2.0
// Small numbers for streams, which are pointers: 1 and up, 0 when there are too many.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gpoeo::inject {

// Thread rule: any thread; wait-free. Trivially destructible.
class StreamNumbers {
 public:
  std::uint32_t number(std::uint64_t stream) {
    const std::uint64_t key = stream + 1;  // 0 marks a free place
    std::size_t at = (key * 0x9e3779b97f4a7c15ULL) >> 57;
    for (std::size_t tries = 0; tries < kMostTries; ++tries, at = (at + 1) % kPlaces) {
      std::uint64_t there = keys_[at].load(std::memory_order_relaxed);
      if (there == 0 && keys_[at].compare_exchange_strong(there, key, std::memory_order_relaxed)) {
        return static_cast<std::uint32_t>(at + 1);
      }
      if (there == key) return static_cast<std::uint32_t>(at + 1);
    }
    return 0;
  }

 private:
  static constexpr std::size_t kPlaces = 128;  // 2^(64 - 57)
  static constexpr std::size_t kMostTries = 16;
  std::atomic<std::uint64_t> keys_[kPlaces]{};
};

}  // namespace gpoeo::inject
