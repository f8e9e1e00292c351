// SPDX-License-Identifier: Apache-2.0
// Training and predicting: the same set gives the same bytes, curves are sane at every clock, and
// held-out families stay unseen.
#include "model/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/evaluation.h"
#include "model/testing/synthetic_set.h"

namespace gpoeo::model {
namespace {

using testing::synthetic_set;
using testing::test_card;

Predictor must_train(const Dataset& dataset, TrainOptions options = {}) {
  auto predictor = train(dataset, options);
  EXPECT_TRUE(predictor) << (predictor ? "" : predictor.error().text);
  return *predictor;
}

std::vector<MemoryClock> card_clocks() {
  std::vector<MemoryClock> clocks;
  for (const double memory : {1000.0, 800.0, 400.0}) {
    MemoryClock clock{memory, {}};
    for (double mhz = 150; mhz <= 1500; mhz += 15) clock.sm_mhz.push_back(mhz);
    clocks.push_back(clock);
  }
  return clocks;
}

TEST(Train, SameSetGivesTheSameBytes) {
  const Dataset set = synthetic_set(24, {1, 1.25, 2.5});
  EXPECT_EQ(must_train(set).to_text(), must_train(set).to_text());
}

TEST(Train, AnotherSetGivesAnotherHash) {
  Dataset set = synthetic_set(12);
  const std::string before = must_train(set).facts().training_hash;
  set.examples[3].lines[0].log_time.back() += 1e-6;
  EXPECT_NE(must_train(set).facts().training_hash, before);
}

TEST(Train, RefusesTooFewFamilies) {
  const auto refused = train(synthetic_set(6), {});  // three families
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("families"), std::string::npos) << refused.error().text;
}

TEST(Train, TreesAreUsedWhereTheyHelp) {
  const Dataset set = synthetic_set(60, {1, 1.25, 2.5});
  TrainOptions bare;
  bare.trees = false;
  const double without = must_train(set, bare).facts().cv_time_error;
  EXPECT_LT(must_train(set).facts().cv_time_error, 0.9 * without);
}

TEST(Train, ExcludedFamiliesLeaveNoTrace) {
  const Dataset set = synthetic_set(24);
  Dataset other = set;
  for (Example& e : other.examples)
    if (e.family == "f03")
      for (double& t : e.lines[0].log_time) t *= 3;
  const std::vector<std::string> out{"f03"};
  const auto a = train_excluding(set, out, {});
  const auto b = train_excluding(other, out, {});
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->to_text(), b->to_text());
  EXPECT_NE(must_train(set).to_text(), must_train(other).to_text());
}

TEST(Predict, DefaultSettingIsExactlyOne) {
  const Dataset set = synthetic_set(24, {1, 1.25, 2.5});
  const Predictor predictor = must_train(set);
  for (const Example& e : set.examples) {
    const auto points = predictor.predict(e.device, e.profile, {{1000, {1500}}});
    EXPECT_DOUBLE_EQ(points[0].time, 1);
    EXPECT_DOUBLE_EQ(points[0].energy, 1);
    EXPECT_EQ(points[0].time_error, 0);
    EXPECT_EQ(points[0].energy_error, 0);
  }
}

// Over all clocks, far below the trained ones too, and for any profile.
TEST(Predict, TimeNeverFallsWhenAClockFalls) {
  const Predictor predictor = must_train(synthetic_set(40, {1, 1.25, 2.5}));
  for (int i = 0; i < 200; ++i) {
    Profile profile;
    profile.power_w = 50 + 2 * i;
    if (i % 5) profile.counters[response::Counter::kGrActive] = (i * 37 % 101) / 100.0;
    if (i % 3) profile.counters[response::Counter::kDramActive] = (i * 53 % 101) / 100.0;
    if (i % 4) profile.counters[response::Counter::kTensorActive] = (i * 71 % 101) / 100.0;
    const auto clocks = card_clocks();
    const auto points = predictor.predict(test_card(), profile, clocks);
    const std::size_t n = clocks[0].sm_mhz.size();
    for (std::size_t m = 0; m < clocks.size(); ++m)
      for (std::size_t s = 0; s < n; ++s) {
        const PointPrediction& p = points[m * n + s];
        ASSERT_GT(p.time, 0);
        ASSERT_GT(p.energy, 0);
        ASSERT_GE(p.time_error, 0);
        if (s > 0) {
          ASSERT_LE(p.time, points[m * n + s - 1].time + 1e-12) << m << " " << s;
        }
        if (m > 0) {
          ASSERT_GE(p.time, points[(m - 1) * n + s].time - 1e-12) << m << " " << s;
        }
      }
  }
}

TEST(Predict, DoubtGrowsWithTheDistance) {
  const Dataset set = synthetic_set(24);
  const Example& e = set.examples.front();
  const auto points = must_train(set).predict(e.device, e.profile, {{1000, {700, 1100, 1400}}});
  EXPECT_GT(points[0].time_error / points[0].time, points[1].time_error / points[1].time);
  EXPECT_GT(points[1].time_error / points[1].time, points[2].time_error / points[2].time);
}

// On a law that the response can follow, held-out families are known within a few per cent, far
// better than without counters, and the intervals hold about what they say.
TEST(Evaluate, HeldOutFamiliesOfAKnownLaw) {
  EvaluationOptions options;
  options.hold_out = HoldOut::kFamily;
  options.train.rounds = 40;
  const auto methods = evaluate(synthetic_set(20), {}, options);
  ASSERT_TRUE(methods) << methods.error().text;
  const Summary ours = summarise(methods->front(), 0.05);
  EXPECT_LT(ours.time_mean, 0.03);
  EXPECT_LT(ours.energy_mean, 0.03);
  EXPECT_GT(ours.time_covered, 0.80);
  const Summary blind = summarise(methods->back(), 0.05);
  EXPECT_LT(ours.time_mean, 0.5 * blind.time_mean);
}

}  // namespace
}  // namespace gpoeo::model
