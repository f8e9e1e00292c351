// SPDX-License-Identifier: Apache-2.0
#include "response/monotone_cubic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace gpoeo::response {
namespace {

TEST(MonotoneCubic, PassesExactlyThroughItsPoints) {
  const std::vector<double> x = {1, 2, 4, 4.5, 9};
  const std::vector<double> y = {0.1, 7.3, -2.1, -2.1, 5.7};
  const MonotoneCubic f(x, y);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(f(x[i]), y[i]);
}

TEST(MonotoneCubic, KeepsTheEndsOutside) {
  const MonotoneCubic f({1, 2, 3}, {5, 4, 1});
  EXPECT_EQ(f(-100), 5);
  EXPECT_EQ(f(100), 1);
  EXPECT_EQ(f(std::nan("")), 5) << "never an answer outside of the data";
}

TEST(MonotoneCubic, OnePointIsAConstantAndTwoAreALine) {
  EXPECT_EQ(MonotoneCubic({3}, {7})(100), 7);
  EXPECT_NEAR(MonotoneCubic({0, 4}, {1, 3})(1), 1.5, 1e-15);
}

TEST(MonotoneCubic, ReproducesALineOnAnUnevenAxis) {
  const std::vector<double> x = {0, 1, 1.1, 5, 7};
  std::vector<double> y;
  for (const double v : x) y.push_back(2 - 3 * v);
  const MonotoneCubic f(x, y);
  for (double v = 0; v <= 7; v += 0.01) EXPECT_NEAR(f(v), 2 - 3 * v, 1e-12);
}

TEST(MonotoneCubic, FollowsASmoothCurveClosely) {
  std::vector<double> x;
  std::vector<double> y;
  for (int i = 0; i <= 20; ++i) {
    x.push_back(500 + 50.0 * i);
    y.push_back(1000 / x.back());
  }
  const MonotoneCubic f(x, y);
  for (double v = 500; v <= 1500; v += 1) EXPECT_NEAR(f(v) * v / 1000, 1, 2e-3);
}

TEST(MonotoneCubic, RisesAllAlongAnEndIntervalBesideACliff) {
  const MonotoneCubic f({0, 1, 2}, {0, 1, -50});
  for (double v = 0.05; v < 1; v += 0.05) {
    EXPECT_LT(f(v), 1);
    EXPECT_GT(f(v), f(v - 0.05));
  }
}

TEST(MonotoneCubic, IsMonotoneWhereTheDataIsAndNeverOvershoots) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> gap(0.01, 3);
  std::uniform_int_distribution<int> kind(0, 2);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> x = {0};
    std::vector<double> y = {0};
    for (int i = 0; i < 12; ++i) {
      x.push_back(x.back() + gap(random));
      // Plateaus, small drops and cliffs.
      const int k = kind(random);
      y.push_back(y.back() - (k == 0 ? 0 : k == 1 ? gap(random) : 100 * gap(random)));
    }
    const MonotoneCubic f(x, y);
    double before = f(0);
    for (double v = 0; v <= x.back(); v += x.back() / 2000) {
      EXPECT_LE(f(v), before + 1e-9);
      before = f(v);
      const auto right = std::ranges::lower_bound(x, v) - x.begin();
      if (right == 0) continue;
      EXPECT_LE(f(v), y[static_cast<std::size_t>(right - 1)]);
      EXPECT_GE(f(v), y[static_cast<std::size_t>(right)]);
    }
  }
}

}  // namespace
}  // namespace gpoeo::response
