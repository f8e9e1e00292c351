// SPDX-License-Identifier: Apache-2.0
#include "telemetry/iteration_energy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "telemetry/testing/loop.h"

namespace gpoeo::telemetry {
namespace {

// Iterations of varying length: 70 % at 600 W, then 200 W. `ends` says where each ends.
struct Job {
  std::vector<double> ends_s;
  explicit Job(double mean_s, double spread, unsigned seed, double until_s = 40) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    for (double t = 0; t < until_s;) {
      t += mean_s * std::max(0.2, 1 + spread * normal(random));
      ends_s.push_back(t);
    }
  }
  double power(double t) const {
    const auto next = std::upper_bound(ends_s.begin(), ends_s.end(), t);
    if (next == ends_s.end() || next == ends_s.begin()) return 400;
    const double begin = *(next - 1);
    return (t - begin) / (*next - begin) < 0.7 ? 600 : 200;
  }
  std::vector<Instant> ends(const SyntheticDevice& device, double from_s, double to_s) const {
    std::vector<Instant> out;
    for (double t : ends_s) {
      if (t >= from_s && t <= to_s) out.push_back(device.at(t));
    }
    return out;
  }
};

TEST(IterationEnergy, MeansAreExactOverWholeIterations) {
  const Job job(0.31, 0.05, 1);
  Loop loop([&](double t) { return job.power(t); });
  loop.run_until(30);
  const auto ends = job.ends(loop.device, 8, 28);
  const auto result = iteration_energy(loop.meter, ends);
  ASSERT_TRUE(result) << result.error().text;
  const double n = static_cast<double>(ends.size() - 1);
  const double t0 = to_seconds(ends.front() - loop.device.at(0)).value();
  const double t1 = to_seconds(ends.back() - loop.device.at(0)).value();
  EXPECT_EQ(result->iterations, ends.size() - 1);
  EXPECT_NEAR(result->time.value(), (t1 - t0) / n, 1e-9);
  EXPECT_NEAR(result->energy.value(), loop.device.energy_j(t0, t1) / n,
              0.005 * result->energy.value());
  EXPECT_TRUE(result->time_error && result->energy_error);
}

TEST(IterationEnergy, StandardErrorOfTimeMatchesTheScatterOverSeeds) {
  double squares = 0, stated = 0;
  constexpr int kSeeds = 40;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const Job job(0.2, 0.1, seed, 14);
    Loop loop([&](double t) { return job.power(t); });
    loop.run_until(13);
    const auto result = iteration_energy(loop.meter, job.ends(loop.device, 1, 12));
    ASSERT_TRUE(result && result->time_error);
    const double off = result->time.value() - 0.2;
    squares += off * off / kSeeds;
    stated += result->time_error->value() * result->time_error->value() / kSeeds;
  }
  EXPECT_GT(std::sqrt(stated), 0.5 * std::sqrt(squares));
  EXPECT_LT(std::sqrt(stated), 2.0 * std::sqrt(squares));
}

TEST(IterationEnergy, FewIterationsHaveNoStandardErrorRatherThanAWrongOne) {
  const Job job(2.5, 0.02, 3);
  Loop loop([&](double t) { return job.power(t); });
  loop.run_until(20);
  const auto result = iteration_energy(loop.meter, job.ends(loop.device, 6, 12));
  ASSERT_TRUE(result);
  EXPECT_LT(result->iterations, 4u);
  EXPECT_FALSE(result->time_error);
  EXPECT_FALSE(result->energy_error);
}

TEST(IterationEnergy, RefusesWhatIsNoWindow) {
  Loop loop([](double) { return 400.0; });
  loop.run_until(10);
  const std::vector<Instant> one{loop.device.at(5)};
  const std::vector<Instant> twice{loop.device.at(5), loop.device.at(5)};
  const std::vector<Instant> disorder{loop.device.at(5), loop.device.at(7), loop.device.at(6)};
  const std::vector<Instant> future{loop.device.at(5), loop.device.at(20)};
  EXPECT_EQ(iteration_energy(loop.meter, {}).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(iteration_energy(loop.meter, one).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(iteration_energy(loop.meter, twice).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(iteration_energy(loop.meter, disorder).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(iteration_energy(loop.meter, future).error().kind, ErrorKind::kBusy);
}

}  // namespace
}  // namespace gpoeo::telemetry
