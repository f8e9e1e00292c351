// SPDX-License-Identifier: Apache-2.0
// Energy over time, with holes.
#include "control/energy_timeline.h"

#include <gtest/gtest.h>

namespace gpoeo::control {
namespace {

Instant at(double s) { return instant_from_ns(1'000'000'000'000) + to_duration(Seconds(s)); }

TEST(EnergyTimeline, SumsGpusProRataAtTheEdges) {
  EnergyTimeline energy;
  energy.add(0, at(0), at(10), Joules(1000), Joules(10));
  energy.add(1, at(0), at(10), Joules(500), Joules(0));
  const auto e = energy.between(at(5), at(10));
  ASSERT_TRUE(e);
  EXPECT_NEAR(e->value, 750, 1e-9);
  EXPECT_NEAR(e->error, 5, 1e-9);
  EXPECT_FALSE(energy.between(at(5), at(12))) << "a seventh was never read";
}

TEST(EnergyTimeline, WhatWasReadIsNotAssumed) {
  EnergyTimeline energy;
  energy.add(0, at(0), at(10), Joules(1000), Joules(10));
  energy.add(0, at(10), at(20), Joules(200), Joules(10));
  const auto e = energy.assumed_between(at(10), at(20));
  EXPECT_NEAR(e.value, 200, 1e-9);
  EXPECT_NEAR(e.error, 10, 1e-9);
}

// Each GPU's hole is filled with that GPU's mean power, and may be off by all of it.
TEST(EnergyTimeline, AHoleIsAssumedToDrawTheMean) {
  EnergyTimeline energy;
  energy.add(0, at(0), at(10), Joules(1000), Joules(0));
  energy.add(0, at(20), at(30), Joules(3000), Joules(0));
  energy.add(1, at(0), at(30), Joules(300), Joules(0));
  EXPECT_FALSE(energy.between(at(8), at(20)));
  const auto e = energy.assumed_between(at(8), at(20));
  EXPECT_NEAR(e.value, 2 * 100 + 10 * 200 + 12 * 10, 1e-9);
  EXPECT_NEAR(e.error, 10 * 200, 1e-9);
  EXPECT_EQ(EnergyTimeline().assumed_between(at(0), at(1)).value, 0);
}

}  // namespace
}  // namespace gpoeo::control
