// SPDX-License-Identifier: Apache-2.0
#include "response/smooth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "response/banded.h"
#include "response/robust.h"

namespace gpoeo::response {
namespace {

using Curve = std::function<double(double)>;

// The logs of 61 clocks, 510..1410 MHz.
std::vector<double> log_clocks() {
  std::vector<double> x;
  for (int mhz = 510; mhz <= 1410; mhz += 15) x.push_back(std::log(mhz));
  return x;
}

double log_mhz(double mhz) { return std::log(mhz); }

std::vector<double> values(const std::vector<double>& x, const Curve& f) {
  std::vector<double> y;
  for (const double v : x) y.push_back(f(v));
  return y;
}

std::vector<double> with_noise(std::vector<double> y, double sigma, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(0, sigma);
  for (double& v : y) v += noise(random);
  return y;
}

double rms(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

double worst(const std::vector<double>& a, const std::vector<double>& b) {
  double w = 0;
  for (std::size_t i = 0; i < a.size(); ++i) w = std::max(w, std::abs(a[i] - b[i]));
  return w;
}

// Host part, compute part and a memory-bound floor: what jobs look like.
double compute_bound(double x) { return std::log(0.3 + 0.7 * 1410 / std::exp(x)); }
double with_knee(double x) { return std::max(0.0, 0.9 * (log_mhz(800) - x)); }

constexpr SmoothOptions kFalling{.shape = Shape::kNonIncreasing};

TEST(Smooth, RecoversKnownCurvesBetterThanTheRawPoints) {
  const auto x = log_clocks();
  for (const Curve& truth : {Curve(compute_bound), Curve(with_knee)}) {
    const auto exact = values(x, truth);
    for (const double sigma : {0.005, 0.01, 0.05}) {
      double fitted_error = 0;
      double raw_error = 0;
      for (unsigned seed = 0; seed < 20; ++seed) {
        const auto y = with_noise(exact, sigma, seed);
        fitted_error += rms(smooth(x, y, kFalling).z, exact);
        raw_error += rms(y, exact);
      }
      EXPECT_LT(fitted_error, 0.5 * raw_error) << "noise " << sigma;
    }
  }
}

TEST(Smooth, EstimatesTheNoise) {
  const auto x = log_clocks();
  double sum = 0;
  for (unsigned seed = 0; seed < 30; ++seed) {
    sum += smooth(x, with_noise(values(x, compute_bound), 0.02, seed), kFalling).noise;
  }
  EXPECT_NEAR(sum / 30, 0.02, 0.003);
}

TEST(Smooth, LeavesExactDataAlone) {
  const auto x = log_clocks();
  for (const Curve& truth : {Curve(compute_bound), Curve(with_knee)}) {
    const auto y = values(x, truth);
    EXPECT_LT(worst(smooth(x, y, kFalling).z, y), 1e-3);
    EXPECT_LT(worst(smooth(x, y).z, y), 1e-3);
  }
}

TEST(Smooth, KeepsAKneeUnderNoise) {
  const auto x = log_clocks();
  const auto exact = values(x, with_knee);
  double sum = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    sum += worst(smooth(x, with_noise(exact, 0.004, seed), kFalling).z, exact);
  }
  EXPECT_LT(sum / 20, 0.015);
}

TEST(Smooth, KeepsAStaircase) {
  // As memory-bound codes have on an A100 below 850 MHz.
  const Curve stairs = [](double x) {
    const double mhz = std::exp(x);
    return mhz < 642 ? 0.40 : mhz < 687 ? 0.33 : mhz < 742 ? 0.21 : mhz < 802 ? 0.12 : 0.0;
  };
  const auto x = log_clocks();
  const auto exact = values(x, stairs);
  for (unsigned seed = 0; seed < 10; ++seed) {
    const auto fit = smooth(x, with_noise(exact, 0.002, seed), kFalling);
    EXPECT_LT(worst(fit.z, exact), 0.012);
  }
}

TEST(Smooth, IgnoresSingleOutliersEitherWay) {
  const auto x = log_clocks();
  const auto exact = values(x, compute_bound);
  for (unsigned seed = 0; seed < 10; ++seed) {
    auto y = with_noise(exact, 0.005, seed);
    for (const std::size_t i : {5U, 20U, 29U, 48U}) y[i] += i % 2 == 0 ? 0.15 : -0.15;
    const auto fit = smooth(x, y, kFalling);
    EXPECT_LT(worst(fit.z, exact), 0.015);
    for (const std::size_t i : {5U, 20U, 29U, 48U}) EXPECT_LT(fit.weights[i], 0.1);
  }
}

TEST(Smooth, IgnoresAnOutlierAtTheTopEnd) {
  const auto x = log_clocks();
  const auto exact = values(x, compute_bound);
  auto y = with_noise(exact, 0.005, 3);
  y.back() -= 0.12;
  EXPECT_LT(worst(smooth(x, y, kFalling).z, exact), 0.015);
}

TEST(Smooth, KeepsASuddenRiseAtTheLowEnd) {
  // What throttling does at the lowest clock or power limit.
  const auto x = log_clocks();
  for (unsigned seed = 0; seed < 10; ++seed) {
    auto y = with_noise(values(x, compute_bound), 0.01, seed);
    y[0] += 0.3;
    EXPECT_NEAR(smooth(x, y, kFalling).z[0], y[0], 0.1);
  }
}

TEST(Smooth, IgnoresRunsOfLongTimesWhereTimeMayNotRise) {
  // A plateau with bursts of interference, as LSTM training has on the A100.
  const auto x = log_clocks();
  const auto exact = values(x, with_knee);
  for (unsigned seed = 0; seed < 10; ++seed) {
    auto y = with_noise(exact, 0.005, seed);
    for (const std::size_t i : {24U, 25U, 26U, 37U, 38U, 39U, 40U, 50U, 51U, 57U, 58U, 59U, 60U}) {
      y[i] += 0.06;
    }
    EXPECT_LT(worst(smooth(x, y, kFalling).z, exact), 0.025);
  }
}

TEST(Smooth, FallingMeansFallingForAnyData) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> gap(0.001, 1);
  std::normal_distribution<double> any(0, 1);
  for (int round = 0; round < 300; ++round) {
    const std::size_t n = 1 + static_cast<std::size_t>(round) % 80;
    std::vector<double> x = {0};
    std::vector<double> y = {any(random)};
    while (x.size() < n) {
      x.push_back(x.back() + gap(random));
      y.push_back(y.back() * (round % 2) + any(random) * std::pow(10.0, round % 7 - 5));
    }
    const auto z = smooth(x, y, kFalling).z;
    ASSERT_EQ(z.size(), n);
    for (std::size_t i = 0; i + 1 < n; ++i) ASSERT_GE(z[i], z[i + 1]) << "round " << round;
    const auto [low, high] = std::ranges::minmax(y);
    EXPECT_LE(z.front(), high + 0.5 * (high - low) + 1e-9);
    EXPECT_GE(z.back(), low - 0.5 * (high - low) - 1e-9);
  }
}

TEST(Smooth, RisingDataBecomesFlat) {
  const auto x = log_clocks();
  const auto z = smooth(x, values(x, [](double v) { return v; }), kFalling).z;
  EXPECT_NEAR(z.front(), z.back(), 1e-3);
}

TEST(Smooth, ShiftsWithItsData) {
  const auto x = log_clocks();
  const auto y = with_noise(values(x, compute_bound), 0.01, 5);
  std::vector<double> shifted = y;
  for (double& v : shifted) v += 7.25;
  const auto a = smooth(x, y, kFalling);
  const auto b = smooth(x, shifted, kFalling);
  EXPECT_EQ(a.lambda, b.lambda);
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(a.z[i] + 7.25, b.z[i], 1e-7);
}

TEST(Smooth, FewPointsAreNotSmoothedButMadeToFall) {
  EXPECT_EQ(smooth(std::vector{1.0}, std::vector{3.0}, kFalling).z, std::vector{3.0});
  const std::vector<double> x = {1, 2, 3};
  const std::vector<double> y = {3, 1, 2};
  EXPECT_EQ(smooth(x, y).z, y);
  EXPECT_EQ(smooth(x, y, kFalling).z, (std::vector<double>{3, 1.5, 1.5}));
}

TEST(Smooth, StandsAxesAndValuesOfAnySize) {
  std::vector<double> x;
  std::vector<double> y;
  for (int i = 0; i < 40; ++i) {
    x.push_back(i < 20 ? i * 1e-12 : std::pow(10.0, i - 20));
    y.push_back(i % 3 == 0 ? 600 : -600);
  }
  x[1] = x[0];
  for (const double v : smooth(x, y, kFalling).z) EXPECT_TRUE(std::isfinite(v));
  for (const double v : smooth(x, std::vector<double>(40, 1.0)).z) EXPECT_NEAR(v, 1, 1e-6);
}

TEST(BandedFactor, SolvesAndInverts) {
  BandedMatrix a(6);
  for (std::size_t i = 0; i < 6; ++i) {
    a.diagonal[i] = 5 + static_cast<double>(i);
    a.first[i] = -1.5;
    a.second[i] = 0.75;
  }
  const BandedFactor factor(a);
  const auto inverse = factor.inverse_diagonal();
  for (std::size_t column = 0; column < 6; ++column) {
    std::vector<double> unit(6, 0.0);
    unit[column] = 1;
    const auto z = factor.solve(unit);
    EXPECT_NEAR(z[column], inverse[column], 1e-14);
    for (std::size_t i = 0; i < 6; ++i) {
      double product = a.diagonal[i] * z[i];
      if (i >= 1) product += a.first[i - 1] * z[i - 1];
      if (i >= 2) product += a.second[i - 2] * z[i - 2];
      if (i + 1 < 6) product += a.first[i] * z[i + 1];
      if (i + 2 < 6) product += a.second[i] * z[i + 2];
      EXPECT_NEAR(product, unit[i], 1e-14);
    }
  }
}

TEST(PoolNonIncreasing, PoolsByWeight) {
  const std::vector<double> y = {5, 1, 4, 0};
  const std::vector<double> w = {1, 2, 1, 1};
  EXPECT_EQ(pool_non_increasing(y, w), (std::vector<double>{5, 2, 2, 0}));
}

TEST(PoolMedians, OneLongTimeDoesNotLiftThePlateau) {
  EXPECT_EQ(pool_medians_non_increasing(std::vector<double>{5, 1, 1, 9, 1, 1, 0}),
            (std::vector<double>{5, 1, 1, 1, 1, 1, 0}));
}

TEST(RunningMedian, DropsOutliersAndKeepsStepsAndSlopes) {
  EXPECT_EQ(running_median(std::vector<double>{1, 1, 9, 1, 1, 5, 5, 5, 5}),
            (std::vector<double>{1, 1, 1, 1, 5, 5, 5, 5, 5}));
  const std::vector<double> slope = {1, 2, 3, 5, 8, 13};
  EXPECT_EQ(running_median(slope), slope);
}

}  // namespace
}  // namespace gpoeo::response
