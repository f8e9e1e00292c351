// SPDX-License-Identifier: Apache-2.0
#include "policy/response_belief.h"

#include <gtest/gtest.h>

#include <cmath>

#include "policy/testing/looks.h"

namespace gpoeo::policy {
namespace {

using testing::a100;
using testing::look;
using testing::with_memory_clocks;

double time_at(double mhz) { return 0.4 + 0.6 * 1410 / mhz; }
double power_at(double mhz) {
  const double d = 1 - mhz / 1410;
  return 1 - 1.3 * d + 0.6 * d * d;
}
Observation truth(double mhz, double at_s) {
  return look(mhz, at_s, time_at(mhz), 100 * time_at(mhz) * power_at(mhz));
}

struct Fixture {
  Problem problem;
  std::vector<Candidate> candidates;
  EvidenceLog log;
  ResponseBelief belief;

  Fixture(Problem p, const std::vector<Observation>& seen)
      : problem(std::move(p)),
        candidates(candidates_of(problem, std::nullopt)),
        log(gather(candidates, seen)),
        belief(problem, candidates, log.blocks) {}
  std::size_t index(double mhz) const {
    for (std::size_t k = 1; k < candidates.size(); ++k) {
      if (candidates[k].line == 0 && candidates[k].setting.sm == megahertz(mhz)) return k;
    }
    ADD_FAILURE() << mhz << " MHz is no candidate";
    return 0;
  }
};

TEST(ResponseBelief, RecoversAResponseFromThreeClocks) {
  const Fixture b(a100(),
                  {look({}, 5, 1, 100), truth(900, 60), truth(1080, 130), truth(1290, 200)});
  for (double mhz = 900; mhz <= 1395; mhz += 15) {
    const Belief& at = b.belief[b.index(mhz)];
    EXPECT_NEAR(std::exp(at.time), time_at(mhz), 0.012) << mhz;
    EXPECT_NEAR(std::exp(at.power), power_at(mhz), 0.012) << mhz;
    EXPECT_LT(at.time_error, 0.012) << mhz;
  }
  EXPECT_EQ(b.belief[0].time, 0);
  EXPECT_EQ(b.belief[0].time_error, 0);
}

TEST(ResponseBelief, KnowsLessFarFromWhatWasMeasured) {
  const Fixture b(a100(), {look({}, 5, 1, 100), truth(1290, 60)});
  EXPECT_LT(b.belief[b.index(1305)].time_error, b.belief[b.index(1200)].time_error);
  EXPECT_LT(b.belief[b.index(1200)].time_error, b.belief[b.index(900)].time_error);
}

TEST(ResponseBelief, TimeNeverFallsAsTheClockDoes) {
  const Fixture b(a100(), {look({}, 5, 1, 100), look(1300, 20, 1.04, 90), look(1200, 30, 0.99, 85),
                           look(900, 40, 1.02, 70)});
  for (std::size_t k = 1; k < b.candidates.size(); ++k) {
    EXPECT_GE(b.belief[k].time, b.belief[k - 1].time) << k;
  }
}

TEST(ResponseBelief, NeighboursErrTogether) {
  const Fixture b(a100(), {look({}, 5, 1, 100), truth(1200, 60)});
  const std::size_t one = b.index(900), next = b.index(885), far = b.index(1305);
  EXPECT_LT(b.belief.contrast_error(one, next, 1), 0.5 * b.belief.contrast_error(one, far, 1));
}

// The job slows down by 2 % for reasons of its own: a baseline beside each probe tells.
TEST(ResponseBelief, DriftOfTheJobIsNoSlowDown) {
  const std::vector<Observation> with = {look({}, 0, 1, 100), look(1200, 20, 1.03, 85),
                                         look({}, 600, 1.02, 102), look(1200, 620, 1.0506, 86.7)};
  const Fixture b(a100(), with);
  EXPECT_NEAR(std::exp(b.belief[b.index(1200)].time), 1.03, 0.006);
  const Fixture without(a100(), {with[0], with[1], with[3]});
  EXPECT_GT(without.belief[without.index(1200)].time, b.belief[b.index(1200)].time);
}

std::vector<Prediction> model(const Problem& problem, double time_bias, double error) {
  std::vector<Prediction> all;
  for (const auto& c : candidates_of(problem, std::nullopt)) {
    if (c.setting.is_default()) continue;
    const double mhz = to_mhz(*c.setting.sm);
    const double time = 1 + (time_at(mhz) - 1) * time_bias;
    all.push_back({.setting = c.setting,
                   .time = time,
                   .time_error = error * (time - 1) + 0.005,
                   .energy = time * power_at(mhz),
                   .energy_error = error});
  }
  return all;
}

TEST(ResponseBelief, AModelNarrowsItBeforeAnyProbe) {
  Problem problem = a100();
  const Fixture before(problem, {look({}, 5, 1, 100)});
  problem.prior = model(problem, 1.0, 0.03);
  const Fixture after(problem, {look({}, 5, 1, 100)});
  const std::size_t k = after.index(1200);
  EXPECT_NEAR(std::exp(after.belief[k].time), time_at(1200), 1e-6);
  EXPECT_LT(after.belief[k].time_error, 0.3 * before.belief[k].time_error);
}

TEST(ResponseBelief, AModelThatIsWrongIsOverruled) {
  Problem problem = a100();
  problem.prior = model(problem, 0.3, 0.02);  // thinks it a third as sensitive as it is
  const Fixture b(problem,
                  {look({}, 5, 1, 100), truth(1200, 20), truth(1290, 40), truth(1110, 60)});
  for (const double mhz : {1110.0, 1200.0, 1290.0, 1155.0}) {
    EXPECT_NEAR(std::exp(b.belief[b.index(mhz)].time), time_at(mhz), 0.02) << mhz;
  }
}

TEST(ResponseBelief, AModelSilentOnSomeSettingIsNotUsed) {
  Problem problem = a100();
  const Fixture without(problem, {look({}, 5, 1, 100)});
  problem.prior = model(problem, 1.0, 0.03);
  problem.prior.pop_back();
  const Fixture with(problem, {look({}, 5, 1, 100)});
  EXPECT_EQ(with.belief[10].time, without.belief[10].time);
}

TEST(ResponseBelief, AMemoryClockHasItsOwnCurve) {
  Problem problem = with_memory_clocks();
  std::vector<Observation> seen = {look({}, 5, 1, 100), truth(1200, 20), truth(1200, 40)};
  seen[2].setting.memory = megahertz(5001);
  seen[2].time = seen[2].time * 1.4;
  seen[2].energy = seen[2].energy * 1.2;
  const Fixture b(problem, seen);
  for (std::size_t k = 1; k < b.candidates.size(); ++k) {
    if (b.candidates[k].setting != seen[2].setting) continue;
    EXPECT_NEAR(std::exp(b.belief[k].time), 1.4 * time_at(1200), 0.01);
  }
  EXPECT_NEAR(std::exp(b.belief[b.index(1200)].time), time_at(1200), 0.01);
}

}  // namespace
}  // namespace gpoeo::policy
