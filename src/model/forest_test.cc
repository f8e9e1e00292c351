// SPDX-License-Identifier: Apache-2.0
// Our reading of XGBoost's trees answers exactly as XGBoost does, missing values included.
#include "model/forest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "model/booster.h"

namespace gpoeo::model {
namespace {

TEST(Forest, AnswersAsXgboostDoes) {
  constexpr std::size_t kRows = 400, kColumns = 6;
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values, labels;
  for (std::size_t r = 0; r < kRows; ++r) {
    float label = 0;
    for (std::size_t c = 0; c < kColumns; ++c) {
      const float v = uniform(random);
      const bool missing = uniform(random) > 0.8F;
      values.push_back(missing ? std::numeric_limits<float>::quiet_NaN() : v);
      label += missing ? 0.3F : std::sin(3 * v * static_cast<float>(c));
    }
    labels.push_back(label);
  }
  auto rows = Rows::make(values, kRows, kColumns);
  ASSERT_TRUE(rows);
  ASSERT_TRUE(rows->set_labels(labels));
  auto booster = Booster::make(*rows, {.depth = 5, .rate = 0.2, .ridge = 1});
  ASSERT_TRUE(booster);
  for (int round = 0; round < 50; ++round) ASSERT_TRUE(booster->update(*rows, round));
  const auto expected = booster->predict(*rows);
  const auto json = booster->to_json();
  ASSERT_TRUE(expected && json);
  const auto parsed = nlohmann::json::parse(*json);
  for (const auto& text : {parsed, Forest::essentials(parsed)}) {
    const auto forest = Forest::from_xgboost(text, kColumns);
    ASSERT_TRUE(forest) << forest.error().text;
    EXPECT_EQ(forest->trees(), 50U);
    for (std::size_t r = 0; r < kRows; ++r)
      ASSERT_EQ(forest->predict(std::span(values).subspan(r * kColumns, kColumns)), (*expected)[r])
          << r;
  }
}

TEST(Forest, RefusesWhatIsNoForest) {
  EXPECT_FALSE(Forest::from_xgboost(nlohmann::json::parse("{}"), 3));
  EXPECT_FALSE(Forest::from_xgboost(nlohmann::json::parse("[1,2]"), 3));
}

}  // namespace
}  // namespace gpoeo::model
