// SPDX-License-Identifier: Apache-2.0
// Chance that lives inside plain data. xoshiro256++ seeded by splitmix64 (Blackman and Vigna 2018,
// both in the public domain); normals by Box and Muller (1958).
#pragma once

#include <array>
#include <cstdint>

namespace gpoeo::twin {

struct Random {
  std::array<std::uint64_t, 4> s;
};

Random make_random(std::uint64_t seed);
std::uint64_t next_u64(Random& random);
// Even in [0, 1).
double next_uniform(Random& random);
// Mean 0, variance 1.
double next_normal(Random& random);
// One step of an AR(1) process of standard deviation `sigma` and time constant `tau_s`, `dt_s`
// after `value`.
double next_drift(Random& random, double value, double sigma, double tau_s, double dt_s);

}  // namespace gpoeo::twin
