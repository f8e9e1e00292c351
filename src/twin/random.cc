// SPDX-License-Identifier: Apache-2.0
#include "twin/random.h"

#include <bit>
#include <cmath>
#include <numbers>

namespace gpoeo::twin {

Random make_random(std::uint64_t seed) {
  Random random{};
  for (auto& word : random.s) {
    seed += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    word = z ^ (z >> 31);
  }
  return random;
}

std::uint64_t next_u64(Random& random) {
  auto& s = random.s;
  const std::uint64_t result = std::rotl(s[0] + s[3], 23) + s[0];
  const std::uint64_t t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = std::rotl(s[3], 45);
  return result;
}

double next_uniform(Random& random) {
  return static_cast<double>(next_u64(random) >> 11) * 0x1.0p-53;
}

double next_normal(Random& random) {
  const double u = 1.0 - next_uniform(random);  // in (0, 1]: its logarithm is finite
  const double v = next_uniform(random);
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

double next_drift(Random& random, double value, double sigma, double tau_s, double dt_s) {
  if (sigma <= 0.0) return 0.0;
  const double keep = std::exp(-dt_s / tau_s);
  return keep * value + sigma * std::sqrt(1.0 - keep * keep) * next_normal(random);
}

}  // namespace gpoeo::twin
