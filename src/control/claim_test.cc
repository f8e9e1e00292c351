// SPDX-License-Identifier: Apache-2.0
// What may be claimed, on numbers worked out by hand.
#include "control/claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/chance.h"

namespace gpoeo::control {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// 1 s and 100 J an iteration at default clocks, known within 0.5 % and 1 %.
ComparedWork work(double iterations, double time_s, double energy_j) {
  return {.baseline = {.time_s = {1.0, 0.005}, .energy_j = {100, 1}, .windows = 1, .seconds = 10},
          .iterations = {iterations, 0},
          .time_s = time_s,
          .energy_j = {energy_j, 0}};
}

Evidence evidence(std::vector<ComparedWork> all) {
  return {.work = std::move(all), .compared_share = 1, .of_all = "all of it"};
}

TEST(Claim, IsOfAllWorkAgainstItsBaselines) {
  const auto c = claim(evidence({work(100, 104, 8000), work(50, 50, 5000)}));
  ASSERT_TRUE(c.saving) << c.why_not;
  EXPECT_NEAR(c.saving->net_saving.value, 1 - 13000.0 / 15000, 1e-12);
  EXPECT_NEAR(c.saving->net_slowdown.value, 4.0 / 150, 1e-12);
  // Baselines may all be off to the same side: their errors do not average out.
  EXPECT_NEAR(c.saving->net_saving.error, 13.0 / 15 * 0.01, 1e-9);
  EXPECT_NEAR(c.saving->net_slowdown.error, 154.0 / 150 * 0.005, 1e-9);
}

TEST(Claim, HowMuchWorkItWasMayBeUnsureToo) {
  ComparedWork traced = work(100, 104, 8000);
  traced.iterations.error = 2;
  const auto c = claim(evidence({traced}));
  EXPECT_NEAR(c.saving->net_saving.error, 0.8 * std::hypot(0.01, 0.02), 1e-9);
  EXPECT_NEAR(c.saving->net_slowdown.error, 1.04 * std::hypot(0.005, 0.02), 1e-9);
}

// A pause counts with nothing saved in it; that it may have saved as much as the rest is in the
// interval.
TEST(Claim, PausesDiluteIt) {
  auto e = evidence({work(100, 104, 8000)});
  e.pause_energy_j = 10000;
  e.pause_time_s = 100;
  const auto c = claim(e);
  EXPECT_NEAR(c.saving->net_saving.value, 0.1, 1e-12);
  EXPECT_NEAR(c.saving->net_slowdown.value, 0.02, 1e-12);
  EXPECT_GE(c.saving->net_saving.value + kNinety * c.saving->net_saving.error, 0.2);
  EXPECT_GE(c.saving->net_slowdown.value + kNinety * c.saving->net_slowdown.error, 0.04);
}

TEST(Claim, NoneFromLittleOfTheWorkOrWithoutEnergy) {
  auto little = evidence({work(100, 100, 8000)});
  little.compared_share = 0.79;
  little.of_all = "79 of 100 iterations";
  EXPECT_FALSE(claim(little).saving);
  EXPECT_THAT(claim(little).why_not, HasSubstr("79 of 100 iterations"));
  little.compared_share = 0.81;
  EXPECT_TRUE(claim(little).saving);
  EXPECT_THAT(claim(evidence({work(0, 0, 0)})).why_not, HasSubstr("could not be read"));
}

TEST(Claim, NothingIsClaimedOfWhatCannotBe) {
  const Circumstances usual{.clock_writes = 3};
  const auto saving = [](double slowdown, double error) {
    return report::SavingSection{.net_saving = {0.1, error},
                                 .net_slowdown = {slowdown, error},
                                 .held_saving = {},
                                 .held_slowdown = {}};
  };
  EXPECT_THAT(why_nothing_is_claimed(usual, saving(0.02, 0.005)), IsEmpty());
  EXPECT_THAT(why_nothing_is_claimed(usual, saving(-0.02, 0.005)), IsEmpty()) << "noise";
  EXPECT_THAT(why_nothing_is_claimed(usual, saving(-0.08, 0.005)), HasSubstr("shorter"));
  EXPECT_THAT(why_nothing_is_claimed(usual, saving(0.02, 0.07)), HasSubstr("ten points"));
  EXPECT_THAT(why_nothing_is_claimed({.clock_writes = 0}, saving(0, 0.005)),
              HasSubstr("default clocks were kept"));
  EXPECT_THAT(why_nothing_is_claimed({.clocks_may_be_set = false}, {}), HasSubstr("no clock"));
  EXPECT_THAT(why_nothing_is_claimed({.clock_writes = 3, .several_jobs = true}, saving(0, 0.005)),
              HasSubstr("several processes"));
  EXPECT_THAT(why_nothing_is_claimed({.clock_writes = 0, .several_jobs = true}, saving(0, 0.005)),
              HasSubstr("several processes"))
      << "the reason of the reason";
  EXPECT_THAT(why_nothing_is_claimed({.clock_writes = 3, .launches_lost = 0.4}, saving(0, 0.005)),
              HasSubstr("40 % of the launches were lost"));
  EXPECT_THAT(why_nothing_is_claimed({.clock_writes = 3, .launches_lost = 0.005}, saving(0, 0.005)),
              IsEmpty());
  EXPECT_THAT(why_nothing_is_claimed({.clock_writes = 3, .work_changes = 3}, saving(0, 0.005)),
              HasSubstr("changed 3 times"));
}

}  // namespace
}  // namespace gpoeo::control
