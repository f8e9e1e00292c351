// SPDX-License-Identifier: Apache-2.0
// What each policy does with given observations, and how the default one fares against responses
// of every shape.
#include "policy/policy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "policy/fixed.h"
#include "policy/measured_search.h"
#include "policy/testing/simulated_job.h"

namespace gpoeo::policy {
namespace {

using ::testing::HasSubstr;
using testing::Reply;
using testing::Response;

Observation seen(std::optional<double> mhz, double at_s, double time, double energy) {
  Observation o;
  if (mhz) o.setting.sm = megahertz(*mhz);
  o.at = Seconds(at_s);
  o.iterations = 30;
  o.time = Seconds(time);
  o.time_error = Seconds(0.001 * time);
  o.energy = Joules(energy);
  o.energy_error = Joules(0.001 * energy);
  return o;
}

Problem a100(double limit = 0.05) {
  return {.sm_clocks = testing::a100_clocks(), .max_slowdown = limit};
}

TEST(MakePolicy, KnowsItsNamesAndListsThem) {
  EXPECT_EQ((*make_policy("search"))->name(), "search");
  EXPECT_EQ((*make_policy("default"))->name(), "default");
  EXPECT_EQ((*make_policy("static:1200"))->name(), "static");
  for (const char* bad : {"static:", "static:0", "static:-5", "static:x", "static:nan"}) {
    const auto policy = make_policy(bad);
    ASSERT_FALSE(policy) << bad;
    EXPECT_THAT(policy.error().text, HasSubstr("static:1200")) << bad;
  }
  const auto unknown = make_policy("best");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().text, HasSubstr("search, default and static:MHz"));
}

TEST(FixedPolicies, DefaultNeverSets) {
  const DefaultClocks policy;
  const std::vector<Observation> some = {seen({}, 0, 1, 100), seen({}, 20, 1, 100)};
  EXPECT_TRUE(policy.decide(a100(), {}).setting.is_default());
  EXPECT_TRUE(policy.decide(a100(), some).setting.is_default());
}

TEST(FixedPolicies, StaticMeasuresThenHoldsTheNearestClock) {
  const StaticClock policy(megahertz(1203));
  const Decision first = policy.decide(a100(), {});
  EXPECT_EQ(first.purpose, Purpose::kBaseline);
  EXPECT_TRUE(first.setting.is_default());
  const std::vector<Observation> one = {seen({}, 0, 1, 100)};
  const Decision then = policy.decide(a100(), one);
  EXPECT_EQ(then.purpose, Purpose::kHold);
  EXPECT_EQ(then.setting.sm, megahertz(1200));
  EXPECT_EQ(policy.decide({}, one).purpose, Purpose::kLeave) << "no clocks to choose from";
}

TEST(MeasuredSearch, LeavesWhereThereIsNothingToChooseFrom) {
  EXPECT_EQ(MeasuredSearch().decide({}, {}).purpose, Purpose::kLeave);
  const Problem two{.sm_clocks = {megahertz(1000), megahertz(1410)}, .max_slowdown = 0.05};
  EXPECT_EQ(MeasuredSearch().decide(two, {}).purpose, Purpose::kLeave);
}

struct Row {
  const char* what;
  std::vector<Observation> observations;
  Purpose purpose;
  double low_mhz, high_mhz;  // of the clock decided; 0: default clocks
};

TEST(MeasuredSearch, Table) {
  const auto base = seen({}, 5, 1, 100);
  const std::vector<Row> rows = {
      {"nothing known", {}, Purpose::kBaseline, 0, 0},
      {"first probe at about 3/4", {base}, Purpose::kProbe, 1050, 1110},
      {"first probe much too slow: nearer to the top",
       {base, seen(1080, 15, 1.30, 85)},
       Purpose::kProbe,
       1300,
       1395},
      {"flat: further down", {base, seen(1080, 15, 1.001, 75)}, Purpose::kProbe, 800, 1000},
      {"energy rises again below: hold the better",
       {base, seen(1080, 15, 1.001, 75), seen(840, 25, 1.01, 80)},
       Purpose::kHold,
       1030,
       1140},
      {"a held clock within the limit is kept",
       {base, seen(1200, 15, 1.045, 90), seen(1080, 25, 1.2, 95), seen(1200, 35, 1.045, 90),
        seen(1200, 45, 1.045, 90)},
       Purpose::kHold,
       1200,
       1200},
      {"a held clock over the limit is left upwards",
       {base, seen(1200, 15, 1.049, 88), seen(1080, 20, 1.2, 95), seen(1200, 35, 1.07, 88),
        seen(1200, 45, 1.07, 88), seen(1200, 55, 1.07, 88)},
       Purpose::kProbe,
       1215,
       1395},
      {"a fresh baseline when the first is old",
       {base, seen(1200, 15, 1.045, 90), seen(1200, 70, 1.045, 90)},
       Purpose::kBaseline,
       0,
       0},
      {"nothing saves: default clocks",
       {base, seen(1080, 15, 1.3, 120), seen(1245, 25, 1.13, 110), seen(1335, 35, 1.06, 105),
        seen(1380, 45, 1.02, 101), seen(1395, 50, 1.01, 100.5)},
       Purpose::kLeave,
       0,
       0},
  };
  for (const Row& row : rows) {
    const Decision d = MeasuredSearch().decide(a100(), row.observations);
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

// --- against synthetic responses ---

double falling_power(double mhz) {
  const double d = 1 - mhz / 1410;
  return std::max(0.35, 1 - 1.4 * d + 0.5 * d * d);
}

struct Shape {
  const char* name;
  std::function<Reply(Hertz)> response;
};

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

TEST(MeasuredSearch, FindsItsWayThroughEveryShape) {
  constexpr int kSeeds = 60;
  const MeasuredSearch search;
  const Problem problem = a100();
  for (const Shape& shape : shapes()) {
    const auto best = testing::oracle(problem, testing::of_sm_clock(shape.response));
    int violations = 0, undecided = 0, outside = 0;
    double ratio = 0, worst = 0;
    std::size_t most_decisions = 0;
    for (int seed = 0; seed < kSeeds; ++seed) {
      const testing::Run run{.job_s = 600,
                             .iteration_s = 0.05 * std::pow(60.0, (seed + 0.5) / kSeeds),
                             .seed = static_cast<std::uint64_t>(seed)};
      const auto outcome = simulate(search, problem, testing::of_sm_clock(shape.response), run);
      undecided += !outcome.settled_after;
      most_decisions = std::max(most_decisions, outcome.settled_after.value_or(0));
      violations += outcome.steady_slowdown > problem.max_slowdown + 0.005;
      worst = std::max(worst, outcome.steady_slowdown);
      ratio += best.saving > 0.01 ? outcome.steady_saving / best.saving / kSeeds : 0;
      for (const Decision& d : outcome.decisions) {
        outside += d.setting.sm &&
                   std::ranges::find(problem.sm_clocks, *d.setting.sm) == problem.sm_clocks.end();
        outside += d.setting.memory.has_value();
      }
    }
    fmt::print(
        "{:<18} oracle {:4.1f} %, ratio {:.3f}, violations {:.1f} % (worst {:+.1f} %), held "
        "after at most {} decisions\n",
        shape.name, 100 * best.saving, ratio, 100.0 * violations / kSeeds, 100 * worst,
        most_decisions);
    EXPECT_EQ(undecided, 0) << shape.name;
    EXPECT_LE(most_decisions, 16U) << shape.name;
    EXPECT_EQ(outside, 0) << shape.name;
    EXPECT_LE(violations, kSeeds * 5 / 100) << shape.name;
    if (best.saving > 0.03) {  // below, single steps decide
      EXPECT_GE(ratio, 0.85) << shape.name;
    }
  }
}

TEST(MeasuredSearch, SameObservationsSameDecision) {
  const auto shape = testing::of_sm_clock(shapes()[1].response);
  const MeasuredSearch one, other;
  const auto outcome = simulate(one, a100(), shape, {.job_s = 400, .seed = 5});
  ASSERT_GT(outcome.observations.size(), 5U);
  for (std::size_t n = 0; n <= outcome.observations.size(); ++n) {
    const auto so_far = std::span(outcome.observations).first(n);
    const Decision a = one.decide(a100(), so_far), b = other.decide(a100(), so_far);
    EXPECT_EQ(a.purpose, b.purpose);
    EXPECT_EQ(a.setting, b.setting);
    EXPECT_EQ(a.why, b.why);
  }
}

TEST(MeasuredSearch, LeavesAJobThatCannotSaveAndHoldsNothing) {
  const auto none = testing::of_sm_clock(shapes().back().response);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto outcome = simulate(MeasuredSearch(), a100(), none, {.job_s = 300, .seed = seed});
    EXPECT_TRUE(outcome.held.is_default()) << seed << ": " << to_string(outcome.held);
  }
}

// A clock that came to be held is not left and taken again all the time: writes cost time.
TEST(MeasuredSearch, DoesNotWander) {
  for (const Shape& shape : shapes()) {
    double writes = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      writes += simulate(MeasuredSearch(), a100(), testing::of_sm_clock(shape.response),
                         {.job_s = 3600, .seed = seed})
                    .clock_writes;
    }
    // Each fresh baseline takes two writes: 13 of them in an hour.
    EXPECT_LE(writes / 20, 60) << shape.name;
  }
}

}  // namespace
}  // namespace gpoeo::policy
