// SPDX-License-Identifier: Apache-2.0
// The default policy on every workload that was measured on an A100, with DESIGN section 11's
// noise: how much of the best clock's saving it finds, and how often it is too slow.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "policy/measured_search.h"
#include "policy/testing/simulated_job.h"
#include "response/response_curve.h"

namespace gpoeo::policy {
namespace {

using testing::Response;

// DESIGN section 11: iteration periods spread over 0.05 to 3 s by seed.
double iteration_s(std::uint64_t seed, std::uint64_t seeds) {
  const double u = (static_cast<double>(seed) + 0.5) / static_cast<double>(seeds);
  return 0.05 * std::pow(3 / 0.05, u);
}

struct Score {
  double ratio = 0;  // mean of saving over the oracle's, workloads with >= 1 % to be had
  double net_ratio = 0;
  double violations = 0;  // share of runs
  double saving = 0, oracle = 0;
  double settled_at_s = 0;
};

Score score(double limit, double job_s, double noise, std::uint64_t seeds, bool verbose = false) {
  const auto path = std::filesystem::path(GPOEO_SOURCE_DIR) / "data/tables/a100.csv";
  const auto table = response::read_response_table(path);
  EXPECT_TRUE(table) << (table ? "" : table.error().text);
  if (!table) return {};
  Score total;
  double with_gain = 0, runs = 0;
  const MeasuredSearch search;
  for (const auto& workload : table->workloads) {
    const auto curves = response::WorkloadCurves::fit(workload);
    if (!curves) continue;
    const Response response = [&](Hertz f) {
      const auto r = curves->at({.sm_mhz = to_mhz(f)});
      return testing::Reply{.time = r.relative_time, .power = *r.relative_power};
    };
    Problem problem{.sm_clocks = testing::a100_clocks(), .max_slowdown = limit};
    // Below what was measured the curves are flat, which no card is.
    std::erase_if(problem.sm_clocks,
                  [&](Hertz f) { return to_mhz(f) < curves->lines()[0].x.front(); });
    const auto best = testing::oracle(problem, response);
    double own_ratio = 0, own_violations = 0, own_slowdown = 0, own_mhz = 0, own_settled = 0;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      testing::Run run{
          .job_s = job_s, .iteration_s = iteration_s(seed, seeds), .seed = 1000 + seed};
      run.noise.time_cv *= noise;
      run.noise.drift_sigma *= noise;
      run.noise.power_cv *= noise;
      const auto outcome = simulate(search, problem, response, run);
      own_violations += outcome.steady_slowdown > limit + 0.005;
      own_slowdown += outcome.steady_slowdown;
      own_mhz += outcome.held ? to_mhz(*outcome.held) : 1410;
      own_settled += outcome.settled_at_s;
      total.saving += outcome.steady_saving;
      total.oracle += best.saving;
      if (best.saving >= 0.01) {
        own_ratio += outcome.steady_saving / best.saving;
        total.net_ratio += outcome.net_saving / best.saving;
      }
    }
    const auto n = static_cast<double>(seeds);
    runs += n;
    if (best.saving >= 0.01) {
      with_gain += n;
      total.ratio += own_ratio;
    }
    total.violations += own_violations;
    total.settled_at_s += own_settled;
    if (verbose) {
      fmt::print(
          "  {:<22} oracle {:5.1f} % at {:4.0f} MHz, ratio {:5.3f}, mean {:4.0f} MHz {:+5.2f} %, "
          "violations {:4.1f} %, settled {:3.0f} s\n",
          workload.name, 100 * best.saving, best.sm ? to_mhz(*best.sm) : 1410, own_ratio / n,
          own_mhz / n, 100 * own_slowdown / n, 100 * own_violations / n, own_settled / n);
    }
  }
  total.ratio /= with_gain;
  total.net_ratio /= with_gain;
  total.violations /= runs;
  total.settled_at_s /= runs;
  total.saving /= runs;
  total.oracle /= runs;
  return total;
}

void print(const char* what, double limit, const Score& s) {
  fmt::print(
      "a100 {} limit {:4.1f} %: {:.3f} of the oracle's saving ({:.1f} % of {:.1f} %), net {:.3f}, "
      "violations {:.1f} %, held after {:.0f} s\n",
      what, 100 * limit, s.ratio, 100 * s.saving, 100 * s.oracle, s.net_ratio, 100 * s.violations,
      s.settled_at_s);
}

bool verbose() { return std::getenv("GPOEO_TEST_VERBOSE") != nullptr; }

TEST(ShippedCurves, SavesNearlyAllAtFivePercent) {
  const Score s = score(0.05, 600, 1, 40, verbose());
  print("600 s", 0.05, s);
  EXPECT_GE(s.ratio, 0.93);
  EXPECT_LE(s.violations, 0.05);
}

TEST(ShippedCurves, OtherLimitsAndLengths) {
  for (const double limit : {0.01, 0.02, 0.10}) {
    const Score s = score(limit, 600, 1, 40, verbose());
    print("600 s", limit, s);
    EXPECT_LE(s.violations, 0.08) << limit;
  }
  for (const double job_s : {120.0, 300.0, 1800.0}) {
    print(fmt::format("{:.0f} s", job_s).c_str(), 0.05, score(0.05, job_s, 1, 40));
  }
  print("600 s, twice the noise,", 0.05, score(0.05, 600, 2, 40));
}

}  // namespace
}  // namespace gpoeo::policy
