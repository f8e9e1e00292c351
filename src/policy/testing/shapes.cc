// SPDX-License-Identifier: Apache-2.0
#include "policy/testing/shapes.h"

#include <algorithm>
#include <cmath>

namespace gpoeo::policy::testing {
namespace {

double falling_power(double mhz) {
  const double d = 1 - mhz / 1410;
  return std::max(0.35, 1 - 1.4 * d + 0.5 * d * d);
}

}  // namespace

std::vector<Shape> shapes() {
  const auto f = [](Hertz h) { return to_mhz(h); };
  return {
      {"compute-bound",
       [f](Hertz h) { return Reply{.time = 1410 / f(h), .power = falling_power(f(h))}; }},
      {"half and half",
       [f](Hertz h) {
         return Reply{.time = 0.5 + 0.5 * 1410 / f(h), .power = falling_power(f(h))};
       }},
      {"memory-bound flat",
       [f](Hertz h) {
         return Reply{.time = std::max(1.0, 700 / f(h)), .power = falling_power(f(h))};
       }},
      {"stepped",
       [f](Hertz h) {
         const double t = f(h) >= 1100 ? 1.0 : f(h) >= 900 ? 1.04 : f(h) >= 750 ? 1.12 : 1.3;
         return Reply{.time = t, .power = falling_power(f(h))};
       }},
      {"not monotone",
       [f](Hertz h) {
         const double wave = 0.006 * std::sin(f(h) / 20);
         return Reply{.time = 0.7 + 0.3 * 1410 / f(h) + wave * (f(h) < 1395),
                      .power = falling_power(f(h))};
       }},
      {"power-capped",  // the card runs at 1200 by default, whatever is asked above
       [f](Hertz h) {
         const double runs_at = std::min(f(h), 1200.0);
         return Reply{.time = 1200 / runs_at,
                      .power = falling_power(runs_at) / falling_power(1200),
                      .held = f(h) <= 1200};
       }},
      {"host-bound",
       [f](Hertz h) {
         const double gpu = 0.5 * 1410 / f(h);
         return Reply{.time = std::max(1.0, gpu), .power = 0.6 + 0.4 * falling_power(f(h))};
       }},
      {"nothing to gain",
       [f](Hertz h) { return Reply{.time = 1410 / f(h), .power = 0.97 + 0.03 * f(h) / 1410}; }},
  };
}

}  // namespace gpoeo::policy::testing
