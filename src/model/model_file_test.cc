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

TEST(ModelFile, FoundByTheCardsNameElseForAny) {
  const auto folder = std::filesystem::temp_directory_path() / "gpoeo_model_file_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const auto nothing = Predictor::load_for(test_card(), folder);
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().kind, ErrorKind::kNotFound);
  ASSERT_TRUE(
      write_output_file(folder / "any.gpoeo-model", train(synthetic_set(12), {})->to_text()));
  EXPECT_EQ(Predictor::load_for(test_card(), folder)->facts().device, "any");
  ASSERT_TRUE(write_output_file(folder / "test-card.gpoeo-model", model_text()));
  EXPECT_EQ(Predictor::load_for(test_card(), folder)->facts().device, "Test Card");
  // A file under another card's name is still another card's.
  ASSERT_TRUE(write_output_file(folder / model_file_name("Other (Card)"), model_text()));
  Device other = test_card();
  other.name = "Other (Card)";
  EXPECT_EQ(Predictor::load_for(other, folder).error().kind, ErrorKind::kNotSupported);
  std::filesystem::remove_all(folder);
}

// The models that are shipped load, are for the card they are named after, and are sane.
TEST(ModelFile, ShippedModels) {
  int models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(GPOEO_SOURCE_DIR "/data/models")) {
    if (entry.path().extension() != ".gpoeo-model") continue;
    ++models;
    EXPECT_LT(entry.file_size(), 1000000U) << entry.path();
    const auto model = Predictor::load(entry.path());
    ASSERT_TRUE(model) << model.error().text;
    EXPECT_EQ(entry.path().filename(), model_file_name(model->facts().device));
    EXPECT_GE(model->facts().families, 10U);
  }
  EXPECT_EQ(models, 6);
}

TEST(ModelFile, LoadNamesTheFile) {
  const auto missing = Predictor::load("/nonexistent/m.model");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::kNotFound);
  EXPECT_NE(missing.error().text.find("/nonexistent/m.model"), std::string::npos);
}

}  // namespace
}  // namespace gpoeo::model
