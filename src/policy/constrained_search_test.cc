// SPDX-License-Identifier: Apache-2.0
// What the default policy does with given observations, and how it fares against responses of every
// shape.
#include "policy/constrained_search.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "policy/candidates.h"
#include "policy/testing/looks.h"
#include "policy/testing/shapes.h"

namespace gpoeo::policy {
namespace {

using testing::a100;
using testing::look;
using testing::of_sm_clock;
using testing::Reply;
using testing::Shape;
using testing::shapes;
using testing::simulate;
using testing::with_memory_clocks;

TEST(ConstrainedSearch, LeavesWhereThereIsNothingToChooseFrom) {
  EXPECT_EQ(ConstrainedSearch().decide({}, {}).purpose, Purpose::kLeave);
  const Problem two{.sm_clocks = {megahertz(1000), megahertz(1410)}, .max_slowdown = 0.05};
  EXPECT_EQ(ConstrainedSearch().decide(two, {}).purpose, Purpose::kLeave);
}

struct Row {
  const char* what;
  std::vector<Observation> observations;
  Purpose purpose;
  double low_mhz, high_mhz;  // of the clock decided; 0: default clocks
};

TEST(ConstrainedSearch, Table) {
  const auto base = look({}, 5, 1, 100);
  const std::vector<Row> rows = {
      {"nothing known", {}, Purpose::kBaseline, 0, 0},
      {"first probe", {base}, Purpose::kProbe, 900, 1300},
      // It has spent what looks may take of so short a job: what seems good is held, and so
      // measured.
      {"first probe much too slow: nearer to the top",
       {base, look(1080, 15, 1.30, 85)},
       Purpose::kHold,
       1290,
       1395},
      {"flat: further down", {base, look(1080, 15, 1.001, 75)}, Purpose::kProbe, 450, 1000},
      {"a held clock within the limit is kept",
       {base, look(1230, 12, 1.035, 92.5), look(1215, 15, 1.041, 90), look(1200, 25, 1.062, 89),
        look(1215, 35, 1.041, 90), look(1215, 45, 1.041, 90), look(1215, 55, 1.041, 90)},
       Purpose::kHold,
       1215,
       1215},
      {"a held clock over the limit is left upwards",
       {base, look(1200, 15, 1.049, 88), look(1080, 20, 1.2, 95), look(1200, 35, 1.07, 88),
        look(1200, 45, 1.07, 88), look(1200, 55, 1.07, 88)},
       Purpose::kHold,
       1215,
       1395},
      {"nothing saves: default clocks",
       {base, look(1080, 15, 1.3, 120), look(1245, 25, 1.13, 110), look(1335, 35, 1.06, 105),
        look(1380, 45, 1.02, 101), look(1395, 50, 1.01, 100.5)},
       Purpose::kLeave,
       0,
       0},
  };
  for (const Row& row : rows) {
    const Decision d = ConstrainedSearch().decide(a100(), row.observations);
    EXPECT_EQ(d.purpose, row.purpose) << row.what << ": " << to_string(d.setting) << ", " << d.why;
    EXPECT_FALSE(d.why.empty()) << row.what;
    if (row.low_mhz == 0) {
      EXPECT_TRUE(d.setting.is_default()) << row.what << ": " << to_string(d.setting);
      continue;
    }
    ASSERT_TRUE(d.setting.sm) << row.what << ": " << d.why;
    EXPECT_GE(to_mhz(*d.setting.sm), row.low_mhz) << row.what << ": " << d.why;
    EXPECT_LE(to_mhz(*d.setting.sm), row.high_mhz) << row.what << ": " << d.why;
  }
}

// Readings that are no numbers must not move a clock.
TEST(ConstrainedSearch, BadDataLeadsToDefaultClocks) {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), 0.0, -1.0,
                           std::numeric_limits<double>::infinity()}) {
    std::vector<Observation> seen = {look({}, 5, bad, 100), look({}, 10, bad, bad)};
    const Decision d = ConstrainedSearch().decide(a100(), seen);
    EXPECT_TRUE(d.setting.is_default()) << bad << ": " << to_string(d.setting);
    EXPECT_EQ(d.purpose, Purpose::kBaseline) << bad;
  }
}

TEST(ConstrainedSearch, FindsItsWayThroughEveryShape) {
  constexpr int kSeeds = 20;
  const ConstrainedSearch search;
  const Problem problem = a100();
  const auto allowed = candidates_of(problem, std::nullopt);
  for (const Shape& shape : shapes()) {
    const auto response = of_sm_clock(shape.response);
    const auto best = testing::oracle(problem, response);
    int violations = 0, undecided = 0, outside = 0;
    double ratio = 0, worst = 0;
    for (int seed = 0; seed < kSeeds; ++seed) {
      const testing::Run run{.job_s = 900,
                             .iteration_s = 0.05 * std::pow(60.0, (seed + 0.5) / kSeeds),
                             .seed = static_cast<std::uint64_t>(seed)};
      const auto outcome = simulate(search, problem, response, run);
      undecided += !outcome.settled_after;
      violations += outcome.steady_slowdown > problem.max_slowdown + 0.005;
      worst = std::max(worst, outcome.steady_slowdown);
      ratio += best.saving > 0.01 ? outcome.steady_saving / best.saving / kSeeds : 0;
      for (const Decision& d : outcome.decisions) {
        outside += std::ranges::find(allowed, d.setting, &Candidate::setting) == allowed.end();
      }
    }
    fmt::print("{:<18} oracle {:4.1f} %, ratio {:.3f}, violations {:.1f} % (worst {:+.1f} %)\n",
               shape.name, 100 * best.saving, ratio, 100.0 * violations / kSeeds, 100 * worst);
    EXPECT_EQ(undecided, 0) << shape.name;
    EXPECT_EQ(outside, 0) << shape.name;
    EXPECT_LE(violations, kSeeds * 5 / 100) << shape.name;
    if (best.saving > 0.03) {  // below, single steps decide
      EXPECT_GE(ratio, 0.85) << shape.name;
    }
  }
}

TEST(ConstrainedSearch, SameObservationsSameDecision) {
  const auto response = of_sm_clock(shapes()[1].response);
  const ConstrainedSearch one, other;
  const auto outcome = simulate(one, a100(), response, {.job_s = 400, .seed = 5});
  ASSERT_GT(outcome.observations.size(), 5U);
  for (std::size_t n = 0; n <= outcome.observations.size(); ++n) {
    const auto so_far = std::span(outcome.observations).first(n);
    const Decision a = one.decide(a100(), so_far), b = other.decide(a100(), so_far);
    EXPECT_EQ(a.purpose, b.purpose);
    EXPECT_EQ(a.setting, b.setting);
    EXPECT_EQ(a.why, b.why);
  }
}

TEST(ConstrainedSearch, LeavesAJobThatCannotSaveAndHoldsNothing) {
  const auto none = of_sm_clock(shapes().back().response);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto outcome = simulate(ConstrainedSearch(), a100(), none, {.job_s = 300, .seed = seed});
    EXPECT_TRUE(outcome.held.is_default()) << seed << ": " << to_string(outcome.held);
  }
}

// A clock that came to be held is not left and taken again all the time: writes cost time.
TEST(ConstrainedSearch, DoesNotWander) {
  for (const Shape& shape : shapes()) {
    double writes = 0;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      writes += simulate(ConstrainedSearch(), a100(), of_sm_clock(shape.response),
                         {.job_s = 3600, .seed = seed})
                    .clock_writes;
    }
    EXPECT_LE(writes / 10, 30) << shape.name;
  }
}

// Half of the power is the memory's, and the job hardly reads it.
Reply with_memory(const ClockSetting& setting, double traffic) {
  const double f = setting.sm ? to_mhz(*setting.sm) : 1410;
  const double m = setting.memory ? to_mhz(*setting.memory) / 9501 : 1;
  const double compute = 0.9 * 1410 / f + 0.1;
  const double time = std::max(compute, traffic / m);
  const double d = 1 - f / 1410;
  return {.time = time, .power = 0.65 * (1 - 1.3 * d + 0.6 * d * d) + 0.35 * m};
}

TEST(ConstrainedSearch, TakesAMemoryClockThatPaysAndLeavesOneThatDoesNot) {
  Problem problem = with_memory_clocks();
  problem.memory_gears.erase(problem.memory_gears.begin());  // 9251 MHz
  for (const double traffic : {0.2, 0.95}) {
    const auto response = [&](const ClockSetting& s) { return with_memory(s, traffic); };
    const auto best = testing::oracle(problem, response);
    ASSERT_EQ(best.setting.memory.has_value(), traffic < 0.5);
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const auto o =
          simulate(ConstrainedSearch(), problem, response, {.job_s = 1800, .seed = seed});
      EXPECT_EQ(o.held.memory, best.setting.memory) << traffic << " seed " << seed;
      EXPECT_GE(o.net_saving, 0.8 * best.saving - 0.005) << traffic << " seed " << seed;
      EXPECT_LE(o.steady_slowdown, 0.055) << traffic << " seed " << seed;
      const auto deepest = std::ranges::count_if(o.decisions, [](const Decision& d) {
        return d.setting.memory == megahertz(810) && d.purpose == Purpose::kProbe;
      });
      if (traffic > 0.5) {
        EXPECT_EQ(deepest, 0) << "never before the clock above it was found good";
      }
    }
  }
}

TEST(ConstrainedSearch, PowerLimitsAreAKnobLikeAnyOther) {
  Problem problem{.power = PowerLimitRange{.lowest = Watts(100), .highest = Watts(300)}};
  // The cap binds below 250 W; 200 W costs 4 %.
  const auto response = [](const ClockSetting& s) {
    const double watts = s.power_limit ? s.power_limit->value() : 300;
    const double power = std::min(watts, 250.0) / 250;
    return Reply{.time = 1 + 0.04 * std::pow((1 - power) / 0.2, 2), .power = power};
  };
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto o = simulate(ConstrainedSearch(), problem, response, {.job_s = 1800, .seed = seed});
    ASSERT_TRUE(o.held.power_limit) << seed;
    EXPECT_GT(o.steady_saving, 0.13) << seed;
    EXPECT_LE(o.steady_slowdown, 0.055) << seed;
  }
}

// A model that is right does no harm; one that is far off costs little.
TEST(ConstrainedSearch, UsesAModelAndSurvivesAWrongOne) {
  const auto shape = shapes()[1].response;  // half and half
  const auto response = of_sm_clock(shape);
  const auto with_model = [&](double bias) {
    Problem problem = a100();
    for (const auto& c : candidates_of(problem, std::nullopt)) {
      if (c.setting.is_default()) continue;
      const Reply r = shape(*c.setting.sm);
      const double time = 1 + bias * (r.time - 1);
      problem.prior.push_back({.setting = c.setting,
                               .time = time,
                               .time_error = 0.05 * time,
                               .energy = time * r.power,
                               .energy_error = 0.05});
    }
    return problem;
  };
  double without_net = 0, with_net = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const testing::Run run{.job_s = 1800, .seed = seed};
    const auto without = simulate(ConstrainedSearch(), a100(), response, run);
    const auto with = simulate(ConstrainedSearch(), with_model(1), response, run);
    without_net += without.net_saving;
    with_net += with.net_saving;
    for (const double bias : {0.3, 2.0}) {
      const auto wrong = simulate(ConstrainedSearch(), with_model(bias), response, run);
      EXPECT_LE(wrong.steady_slowdown, 0.055) << bias << " seed " << seed;
      EXPECT_GE(wrong.net_saving, 0.8 * without.net_saving) << bias << " seed " << seed;
    }
  }
  EXPECT_GT(with_net, 0.97 * without_net);
}

TEST(ConstrainedSearch, EachObjectiveHoldsItsOwnOptimum) {
  const auto shape = shapes()[2].response;  // time stands still down to half of the clock
  double before = std::numeric_limits<double>::infinity();
  for (const Objective objective : {Objective::kEd2p, Objective::kEdp, Objective::kEnergy}) {
    Problem problem = a100(0.50);
    problem.objective = objective;
    const auto o =
        simulate(ConstrainedSearch(), problem, of_sm_clock(shape), {.job_s = 1800, .seed = 3});
    ASSERT_TRUE(o.held.sm);
    const double mhz = to_mhz(*o.held.sm);
    EXPECT_LE(mhz, before + 30) << "the less time counts, the lower the clock";
    before = mhz;
  }
  // Cost: with eta = 0 only time counts, and nothing is to be gained.
  Problem time_only = a100(0.50);
  time_only.objective = Objective::kCost;
  time_only.cost_eta = 0;
  const auto o = simulate(ConstrainedSearch(), time_only, of_sm_clock(shapes()[0].response),
                          {.job_s = 600, .seed = 3});
  EXPECT_TRUE(o.held.is_default()) << to_string(o.held);
}

// Jobs too short to gain lose next to nothing. (The last shape, whose power does not fall with the
// clock, is like no card.)
TEST(ConstrainedSearch, ShortJobsLoseNothing) {
  auto all = shapes();
  all.pop_back();
  for (const Shape& shape : all) {
    for (const double job_s : {60.0, 120.0, 300.0}) {
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        const auto o = simulate(ConstrainedSearch(), a100(), of_sm_clock(shape.response),
                                {.job_s = job_s, .seed = seed});
        EXPECT_GE(o.net_saving, -0.005) << shape.name << " " << job_s << " s, seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace gpoeo::policy
