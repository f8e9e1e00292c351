// SPDX-License-Identifier: Apache-2.0
#include "control/model_prior.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "twin/data_files.h"
#include "twin/testing/fixtures.h"
#include "twin/twin_device.h"

namespace gpoeo::control {
namespace {

using twin::testing::expect_ok;

std::unique_ptr<gpu::Device> open(twin::testing::Bench& bench) {
  return expect_ok(twin::open_device(bench.twin, 0, gpu::Access::kReadOnly));
}

std::shared_ptr<const model::Predictor> shipped(const ModelledCard& card) {
  return std::make_shared<const model::Predictor>(expect_ok(
      model::Predictor::load_for(card.device, expect_ok(twin::data_directory()) / "models")));
}

Profile busy(double power_w) {
  Profile profile;
  profile.power = Watts(power_w);
  profile.gpu_utilization = 0.98;
  return profile;
}

TEST(ModelPrior, ACardInTheModelsWords) {
  twin::testing::Bench bench(twin::testing::device("h200"));
  const auto card = modelled_card(*open(bench));
  ASSERT_TRUE(card);
  EXPECT_EQ(card->device.name, "NVIDIA H200");
  EXPECT_EQ(card->device.sm_mhz, 1980);
  EXPECT_EQ(card->device.power_limit_w, 700);
  ASSERT_EQ(card->clocks.size(), 2U);
  EXPECT_GT(card->clocks[0].memory_mhz, card->clocks[1].memory_mhz) << "the default comes first";
  EXPECT_EQ(card->device.memory_mhz, card->clocks[0].memory_mhz);
  EXPECT_TRUE(std::ranges::is_sorted(card->clocks[0].sm_mhz));
}

TEST(ModelPrior, EverySettingIsWhatAPolicyWouldAskFor) {
  twin::testing::Bench bench(twin::testing::device("h200"));
  const auto device = open(bench);
  const auto card = modelled_card(*device);
  ASSERT_TRUE(card);
  const auto predictions = predict_with(shipped(*card), *card)(busy(400));
  ASSERT_EQ(predictions.size(), card->clocks[0].sm_mhz.size() + card->clocks[1].sm_mhz.size());
  const auto at_default =
      std::ranges::count_if(predictions, [](const auto& p) { return p.setting.is_default(); });
  EXPECT_EQ(at_default, 1) << "the highest clocks are the driver's default";
  for (const auto& p : predictions) {
    if (p.setting.is_default()) {
      EXPECT_NEAR(p.time, 1, 1e-9);
      EXPECT_NEAR(p.energy, 1, 1e-9);
      continue;
    }
    EXPECT_TRUE(p.setting.sm) << "a memory clock comes with an SM clock";
    EXPECT_FALSE(p.setting.power_limit);
    EXPECT_FALSE(p.setting.memory && to_mhz(*p.setting.memory) == *card->device.memory_mhz)
        << "the default memory clock is not asked for";
    EXPECT_GT(p.time, 0);
    EXPECT_GT(p.energy, 0);
    EXPECT_GT(p.time_error, 0);
  }
}

// Counters that came from nowhere are no counters, whatever stands in them.
TEST(ModelPrior, CountersCountOnlyWhereTheyWereRead) {
  twin::testing::Bench bench(twin::testing::device("h200"));
  const auto card = modelled_card(*open(bench));
  const auto predict = predict_with(shipped(*card), *card);
  const auto slowest = [&](const Profile& profile) {
    const auto all = predict(profile);
    return std::ranges::max_element(all, {}, &policy::Prediction::time)->time;
  };
  Profile profile = busy(400);
  const double without = slowest(profile);
  profile.activity.sm_active = 0.99;
  profile.activity.dram_active = 0.05;
  EXPECT_EQ(slowest(profile), without);
  profile.origin = CounterOrigin::kGpm;
  EXPECT_NE(slowest(profile), without);
}

}  // namespace
}  // namespace gpoeo::control
