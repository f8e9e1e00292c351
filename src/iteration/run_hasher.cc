// SPDX-License-Identifier: Apache-2.0
#include "iteration/launch_marks.h"

namespace gpoeo::iteration {
namespace {

// Finaliser of MurmurHash3: every input bit reaches every output bit.
constexpr std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

// An odd multiplier for the rolling polynomial, and its powers at the run lengths.
constexpr std::uint64_t kBase = 0x9e3779b97f4a7c15ULL;
constexpr std::array<std::uint64_t, kRunLengths.size()> kBasePower = [] {
  std::array<std::uint64_t, kRunLengths.size()> powers{};
  for (std::size_t i = 0; i < kRunLengths.size(); ++i) {
    powers[i] = 1;
    for (std::size_t k = 0; k < kRunLengths[i]; ++k) powers[i] *= kBase;
  }
  return powers;
}();

}  // namespace

std::uint32_t fold_function_id(std::uint64_t function_id) {
  return static_cast<std::uint32_t>(mix(function_id + 1));
}

void RunHasher::push(std::uint32_t stream, std::uint32_t id) {
  current_ = stream % kStreams;
  History& history = streams_[current_];
  constexpr std::size_t kMask = std::tuple_size_v<decltype(history.ids)> - 1;
  for (std::size_t i = 0; i < kRunLengths.size(); ++i) {
    const std::uint32_t left = history.ids[(history.pushed - kRunLengths[i]) & kMask];
    history.hash[i] = history.hash[i] * kBase + id - left * kBasePower[i];
  }
  history.ids[history.pushed & kMask] = id;
  ++history.pushed;
}

std::optional<std::uint64_t> RunHasher::key(std::size_t which) const {
  const History& history = streams_[current_];
  if (history.pushed < kRunLengths[which]) return std::nullopt;
  return mix(history.hash[which] + which);
}

}  // namespace gpoeo::iteration
