// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace gpoeo {
namespace {

TEST(Units, PowerTimesTimeIsEnergy) {
  EXPECT_DOUBLE_EQ((Watts(250) * Seconds(4)).value(), 1000);
  EXPECT_DOUBLE_EQ((Joules(1000) / Seconds(4)).value(), 250);
  EXPECT_DOUBLE_EQ(Watts(125) / Watts(250), 0.5);
}

TEST(Units, UnlikeQuantitiesDoNotMix) {
  static_assert(!std::is_convertible_v<Watts, Joules>);
  static_assert(!std::is_convertible_v<double, Hertz>);
  EXPECT_LT(megahertz(1395), megahertz(1410));
}

}  // namespace
}  // namespace gpoeo
