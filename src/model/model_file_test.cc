// SPDX-License-Identifier: Apache-2.0
// Model files: what is written is read back, and whatever is wrong is refused with the reason.
#include "model/model_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "model/testing/synthetic_set.h"
#include "model/trainer.h"

namespace gpoeo::model {
namespace {

using testing::synthetic_set;
using testing::test_card;

const std::string& model_text() {
  static const std::string text = [] {
    TrainOptions options;
    options.device = test_card().name;
    options.gpoeo_version = "1.2.3";
    return train(synthetic_set(40, {1, 1.25, 2.5}), options)->to_text();
  }();
  return text;
}

std::string refusal(std::string_view text) {
  const auto model = Predictor::parse(text, "m.model");
  if (model) return "";
  EXPECT_TRUE(model.error().text.starts_with("m.model: ")) << model.error().text;
  return model.error().text;
}

TEST(ModelFile, ReadsBackTheSame) {
  const auto model = Predictor::parse(model_text(), "m");
  ASSERT_TRUE(model) << model.error().text;
  EXPECT_EQ(model->to_text(), model_text());
  EXPECT_EQ(model->facts().device, "Test Card");
  EXPECT_EQ(model->facts().gpoeo_version, "1.2.3");
  EXPECT_EQ(model->facts().workloads, 40U);
  const auto trained = train(synthetic_set(40, {1, 1.25, 2.5}), {});
  const Profile profile = synthetic_set(3).examples[2].profile;
  const std::vector<MemoryClock> clocks{{1000, {700, 1200}}, {800, {700, 1200}}};
  const auto a = trained->predict(test_card(), profile, clocks);
  const auto b = model->predict(test_card(), profile, clocks);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_DOUBLE_EQ(a[i].time, b[i].time);
    EXPECT_DOUBLE_EQ(a[i].energy_error, b[i].energy_error);
  }
}

TEST(ModelFile, HeaderIsReadable) {
  const std::string head = model_text().substr(0, model_text().find("\n---\n"));
  for (const char* part : {"gpoeo-model 1 crc32=", "\"device\": \"Test Card\"", "training_hash",
                           "cv_time_error", "\"sm_active\"", "gpoeo_version"})
    EXPECT_NE(head.find(part), std::string::npos) << part;
}

TEST(ModelFile, RefusesOtherFiles) {
  EXPECT_NE(refusal("").find("not a GPOEO model"), std::string::npos);
  EXPECT_NE(refusal("{\"learner\":{}}").find("not a GPOEO model"), std::string::npos);
}

TEST(ModelFile, RefusesTruncatedAndDamaged) {
  EXPECT_NE(refusal(model_text().substr(0, 5000)).find("truncated"), std::string::npos);
  EXPECT_NE(refusal("gpoeo-model 1").find("truncated"), std::string::npos);
  std::string damaged = model_text();
  damaged[damaged.size() / 2] ^= 1;
  EXPECT_NE(refusal(damaged).find("checksum"), std::string::npos);
  EXPECT_NE(refusal(model_text() + "x").find("checksum"), std::string::npos);
}

TEST(ModelFile, RefusesNewer) {
  std::string newer = model_text();
  newer.replace(newer.find(" 1 "), 3, " 2 ");
  EXPECT_NE(refusal(newer).find("newer GPOEO"), std::string::npos);
}

TEST(ModelFile, RefusesAnotherGpu) {
  const auto model = Predictor::parse(model_text(), "m");
  EXPECT_TRUE(model->check_fits(test_card()));
  Device other = test_card();
  other.name = "Other Card";
  const Status refused = model->check_fits(other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kNotSupported);
  EXPECT_NE(refused.error().text.find("Test Card"), std::string::npos);
  EXPECT_NE(refused.error().text.find("Other Card"), std::string::npos);
  EXPECT_TRUE(train(synthetic_set(12), {})->check_fits(other)) << "a model for any GPU";
}

// A sound checksum over a body that is not: what a wrong tool, or malice, would write.
TEST(ModelFile, RefusesBodiesThatDoNotHoldTogether) {
  const std::string body = model_text().substr(model_text().find('\n') + 1);
  ASSERT_TRUE(parse_model_body(body, "m"));
  const auto broken = [&body](std::string_view from, std::string_view to) {
    std::string text = body;
    const std::size_t at = text.rfind(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const auto model = parse_model_body(text, "m");
    return model ? std::string() : model.error().text;
  };
  EXPECT_NE(broken("\"time_prior\":[", "\"time_prior\":[1,"), "");
  EXPECT_NE(broken("\"time_prior\":[", "\"time_prior\":[1e300,"), "");
  EXPECT_NE(broken("\"left_children\":[1", "\"left_children\":[0"), "") << "a tree that loops";
  EXPECT_NE(broken("\"left_children\":[1", "\"left_children\":[99"), "");
  EXPECT_NE(broken("\"split_indices\":[", "\"split_indices\":[5,"), "");
  EXPECT_NE(broken("\"power_basis\"", "\"power_bases\""), "");
  EXPECT_NE(broken("\"boost\"", "\"roost\""), "") << "another feature list";
  EXPECT_NE(broken("\n---\n", "\n"), "");
}

TEST(ModelFile, LoadNamesTheFile) {
  const auto missing = Predictor::load("/nonexistent/m.model");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::kNotFound);
  EXPECT_NE(missing.error().text.find("/nonexistent/m.model"), std::string::npos);
}

}  // namespace
}  // namespace gpoeo::model
