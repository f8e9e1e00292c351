// SPDX-License-Identifier: Apache-2.0
#include "iteration/log_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace gpoeo::iteration {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(TraceCsv, ReadsColumnsInAnyOrderAndUnits) {
  const auto trace =
      parse_trace_csv("power_mW,other,t_us\r\n1500,x,1000000\n2500,,1020000\n\n", "f");
  ASSERT_TRUE(trace) << trace.error().text;
  EXPECT_EQ(trace->t_s, (std::vector<double>{0, 0.02}));
  EXPECT_EQ(trace->power_w, (std::vector<double>{1.5, 2.5}));
}

TEST(TraceCsv, NamesFileLineAndFieldOfWhatIsWrong) {
  const auto error = [](std::string_view text) {
    const auto trace = parse_trace_csv(text, "run.csv");
    EXPECT_FALSE(trace);
    return trace ? std::string() : trace.error().text;
  };
  EXPECT_THAT(error(""), HasSubstr("run.csv"));
  EXPECT_THAT(error("t_us,power\n1,2\n"), AllOf(HasSubstr("run.csv:1"), HasSubstr("power_mW")));
  EXPECT_THAT(error("t_us,power_mW\n1,2\n2,abc\n"),
              AllOf(HasSubstr("run.csv:3"), HasSubstr("'power_mW'"), HasSubstr("abc")));
  EXPECT_THAT(error("t_us,power_mW\n1,nan\n"), HasSubstr("run.csv:2"));
  EXPECT_THAT(error("t_us,power_mW\n1,2\n2\n"),
              AllOf(HasSubstr("run.csv:3"), HasSubstr("missing")));
  EXPECT_THAT(error("t_us,power_mW\n5,2\n4,2\n"),
              AllOf(HasSubstr("run.csv:3"), HasSubstr("'t_us'"), HasSubstr("rise")));
}

TEST(LaunchCsv, ReadsIdsOfAnySizeAndAnOptionalStream) {
  const auto rows =
      parse_launch_csv("t_ns,function_id,stream\n0,18446744073709551615,7\n5,1,0\n", "f");
  ASSERT_TRUE(rows) << rows.error().text;
  EXPECT_EQ(rows->at(0).function_id, 18446744073709551615U);
  EXPECT_EQ(rows->at(0).stream, 7U);
  EXPECT_EQ(rows->at(1).t_ns, 5);
}

TEST(LaunchCsv, NamesFileLineAndFieldOfWhatIsWrong) {
  for (const char* bad : {"t_ns,function_id\n1,-2\n", "t_ns,function_id\n1,2.5\n",
                          "t_ns,function_id\n1,99999999999999999999\n", "t_ns,function_id\n1,\n"}) {
    const auto rows = parse_launch_csv(bad, "l.csv");
    ASSERT_FALSE(rows) << bad;
    EXPECT_THAT(rows.error().text, AllOf(HasSubstr("l.csv:2"), HasSubstr("function_id")));
  }
  const auto back = parse_launch_csv("t_ns,function_id\n5,1\n4,1\n", "l.csv");
  ASSERT_FALSE(back);
  EXPECT_THAT(back.error().text, AllOf(HasSubstr("l.csv:3"), HasSubstr("t_ns")));
}

class LogFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(LogFiles, AreReadPlainAndGzipped) {
  const std::string text = "t_ns,function_id\n1,2\n3,4\n";
  const auto plain = folder_ / "a.csv", packed = folder_ / "a.csv.gz";
  std::ofstream(plain) << text;
  gzFile file = gzopen(packed.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  for (const auto& path : {plain, packed}) {
    const auto rows = read_launch_csv(path);
    ASSERT_TRUE(rows) << rows.error().text;
    EXPECT_EQ(rows->size(), 2U);
  }
}

TEST_F(LogFiles, ThatAreMissingOrCutOffAreNamed) {
  const auto missing = read_trace_csv(folder_ / "none.csv");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(missing.error().text, HasSubstr("none.csv"));

  std::string text = "t_ns,function_id\n";
  for (int i = 0; i < 5000; ++i) text += std::to_string(i) + "," + std::to_string(i * 7919) + "\n";
  const auto path = folder_ / "cut.csv.gz";
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  const auto cut = read_launch_csv(path);
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().text, HasSubstr("cut.csv.gz"));
  EXPECT_FALSE(read_trace_csv(folder_)) << "a folder is no file";
}

}  // namespace
}  // namespace gpoeo::iteration
