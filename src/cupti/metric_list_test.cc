// SPDX-License-Identifier: Apache-2.0
#include "cupti/metric_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "base/activity.h"
#include "cupti/pm_sampling.h"

namespace gpoeo::cupti {
namespace {

using ::testing::StrEq;

MetricList parse(std::string text, const char* chip) {
  // The names point into the text: it must outlive the list.
  static std::string kept;
  kept = std::move(text);
  return parse_metrics(kept.data(), chip);
}

std::string shipped() {
  std::ifstream file(std::string(GPOEO_SOURCE_DIR) + "/data/counters/cupti.txt");
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(MetricList, TakesTheChipsOwnPasses) {
  const auto list = parse(
      "# made\nchip A\npass\nsm_active a.avg\nchip B # other\n"
      "pass\nsm_active b.avg\ndram_active  c.avg\r\npass\ntensor_active d.avg",
      "B");
  ASSERT_EQ(list.count, 2U);
  ASSERT_EQ(list.passes[0].count, 2U);
  EXPECT_THAT(list.passes[0].metrics[1], StrEq("c.avg"));
  EXPECT_EQ(list.passes[0].words[1], find_activity("dram_active")->number);
  EXPECT_EQ(list.passes[1].count, 1U);
}

TEST(MetricList, WhatMakesNoSenseIsLeftOut) {
  const auto list = parse(
      "sm_active early\nchip A\nsm_active no.pass\npass\nnonsense x\nsm_active\n"
      "chip\npass\n",
      "A");
  EXPECT_EQ(list.count, 1U);
  EXPECT_EQ(list.passes[0].count, 0U);
  EXPECT_EQ(parse("", "A").count, 0U);
  EXPECT_EQ(parse("chip A\npass\n", "B").count, 0U);
}

TEST(MetricList, TooManyPassesOrMetricsStopAtTheirBounds) {
  std::string text = "chip A\n";
  for (int p = 0; p < 30; ++p) {
    text += "pass\n";
    for (int m = 0; m < 30; ++m) text += "sm_active m\n";
  }
  const auto list = parse(text, "A");
  EXPECT_EQ(list.count, kMostPasses);
  EXPECT_EQ(list.passes[kMostPasses - 1].count, kMostPassMetrics);
}

TEST(MetricList, AnyBytesAreSurvived) {
  std::mt19937 random(1);
  const std::string words[] = {"chip", "pass", "sm_active", " ", "\n", "#", "A"};
  for (int run = 0; run < 2000; ++run) {
    std::string text;
    for (int i = 0; i < 60; ++i) {
      text += random() % 4 == 0 ? std::string(1, static_cast<char>(random() % 255 + 1))
                                : words[random() % std::size(words)];
    }
    EXPECT_LE(parse(text, "A").count, kMostPasses);
  }
}

// Every chip of the shipped file has what a model needs, in its first passes.
TEST(MetricList, ShippedFileCoversTheChips) {
  for (const char* chip : {"TU102", "GA100", "GA102", "AD102", "GH100", "GB100", "GB202"}) {
    const auto list = parse(shipped(), chip);
    ASSERT_GE(list.count, 4U) << chip;
    std::vector<std::uint32_t> words;
    for (std::size_t p = 0; p < list.count; ++p) {
      for (std::size_t m = 0; m < list.passes[p].count; ++m) {
        words.push_back(list.passes[p].words[m]);
      }
    }
    for (const char* word : {"gr_active", "sm_active", "sm_occupancy", "dram_active"}) {
      EXPECT_THAT(words, ::testing::Contains(find_activity(word)->number)) << chip << word;
    }
  }
}

TEST(PmSampling, WithoutCuptiItSaysSo) {
  const char* metrics[] = {"sm__cycles_active.avg"};
  PmRequest request;
  request.metrics = metrics;
  request.count = 1;
  request.window_ns = 1'000'000;
  request.interval_ns = 100'000;
  EXPECT_EQ(pm_sample(nullptr, request).error, PmError::kNoCupti);
}

}  // namespace
}  // namespace gpoeo::cupti
