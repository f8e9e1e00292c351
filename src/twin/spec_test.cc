// SPDX-License-Identifier: Apache-2.0
// Device and job files: the shipped ones hold what they promise, bad ones are refused in one line
// that names file, line, key and cure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/file.h"
#include "base/text.h"
#include "twin/data_files.h"
#include "twin/testing/fixtures.h"

namespace gpoeo::twin {
namespace {

using ::testing::AllOf;
using testing::expect_ok;
using ::testing::HasSubstr;

class SpecTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "/spec-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // The shipped H200 file with one piece of text replaced.
  std::string edited(const std::string& from, const std::string& to) {
    std::string text =
        expect_ok(read_file(expect_ok(data_directory()) / "twin" / "devices" / "h200.toml"));
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    return text;
  }
  Error device_error(const std::string& text) {
    EXPECT_TRUE(write_file_durably(folder_ / "my.toml", text).has_value());
    const auto loaded = load_device(folder_ / "my.toml");
    EXPECT_FALSE(loaded.has_value()) << "should have been refused";
    return loaded ? Error{} : loaded.error();
  }
  Error job_error(const std::string& text) {
    EXPECT_TRUE(write_file_durably(folder_ / "job.toml", text).has_value());
    const auto loaded = load_job(folder_ / "job.toml");
    EXPECT_FALSE(loaded.has_value()) << "should have been refused";
    return loaded ? Error{} : loaded.error();
  }

  std::filesystem::path folder_;
};

TEST(DeviceFiles, EveryNumberSaysWhereItComesFrom) {
  const auto folder = expect_ok(data_directory()) / "twin" / "devices";
  int checked = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::istringstream lines(expect_ok(read_file(entry.path())));
    for (std::string line; std::getline(lines, line);) {
      const auto equals = line.find(" = ");
      if (equals == std::string::npos || line.starts_with("#")) continue;
      const char first = line[equals + 3];
      if (first == '"' || line.starts_with("counter_names")) continue;  // not a number
      bool says = false;
      for (const char* source : {"# measured", "# datasheet", "# published", "# assumed"})
        says = says || line.find(source) != std::string::npos;
      EXPECT_TRUE(says) << entry.path().filename() << ": " << line;
      ++checked;
    }
  }
  EXPECT_GT(checked, 200);
}

TEST(DeviceFiles, LoadWithTheirClockTables) {
  EXPECT_THAT(expect_ok(device_names()),
              ::testing::ElementsAre("a100", "h200", "rtx3080ti", "titanx", "v100"));
  const DeviceModel h200 = testing::device("h200");
  EXPECT_EQ(h200.sm_clock_count, 110);
  EXPECT_EQ(h200.memory_clock_count, 2);
  EXPECT_EQ(h200.sm_mhz[static_cast<std::size_t>(h200.default_sm)], 1980);
  const DeviceModel v100 = testing::device("v100");
  EXPECT_EQ(v100.sm_clock_count, 187);
  EXPECT_EQ(v100.sm_mhz[1], 142);  // steps of 7.5 MHz, shown as whole MHz
  EXPECT_EQ(v100.sm_mhz[2], 150);
}

TEST_F(SpecTest, OwnFileIsFoundByItsPath) {
  ASSERT_TRUE(
      write_file_durably(folder_ / "my.toml", edited("\"NVIDIA H200\"", "\"Mine\"")).has_value());
  EXPECT_STREQ(expect_ok(find_device((folder_ / "my.toml").string())).name.data(), "Mine");
  const auto unknown = find_device("b9000");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(unknown.error().text, AllOf(HasSubstr("b9000"), HasSubstr("a100, h200")));
}

TEST_F(SpecTest, BadDeviceFilesNameFileLineKeyAndCure) {
  Error error = device_error(edited("idle_w = 78", "idle_w = -78"));
  EXPECT_EQ(error.kind, ErrorKind::kInvalid);
  EXPECT_THAT(error.text, AllOf(HasSubstr("my.toml:"), HasSubstr("'power.idle_w'"),
                                HasSubstr("-78"), HasSubstr("from 0.1 to")));
  EXPECT_THAT(device_error(edited("idle_w = 78", "idle_w = \"78\"")).text,
              AllOf(HasSubstr("power.idle_w"), HasSubstr("must be a number")));
  EXPECT_THAT(device_error(edited("idle_w = 78", "")).text,
              AllOf(HasSubstr("power.idle_w"), HasSubstr("is missing")));
  EXPECT_THAT(device_error(edited("idle_w = 78", "idle_w = 78\nidel_w = 3")).text,
              AllOf(HasSubstr("power.idel_w"), HasSubstr("not known")));
  EXPECT_THAT(device_error(edited("idle_w = 78", "idle_w = = 78")).text,
              AllOf(HasSubstr("my.toml:"), HasSubstr("TOML")));
  EXPECT_THAT(device_error(edited("default_sm_mhz = 1980", "default_sm_mhz = 1979")).text,
              AllOf(HasSubstr("default_sm_mhz"), HasSubstr("1979")));
  EXPECT_THAT(device_error(edited("[3201, 2201]", "[2201, 3201]")).text,
              AllOf(HasSubstr("memory_mhz"), HasSubstr("highest clock first")));
  EXPECT_THAT(device_error(edited("temperature = \"yes\"", "temperature = \"maybe\"")).text,
              AllOf(HasSubstr("readings.temperature"), HasSubstr("denied")));
  EXPECT_THAT(device_error(edited("sm_step_mhz = 15", "sm_step_mhz = 5")).text,
              HasSubstr("larger step"));
  EXPECT_THAT(device_error(edited("leakage_w_per_k = 0.60", "leakage_w_per_k = 60")).text,
              HasSubstr("heat would feed itself"));
  EXPECT_EQ(load_device(folder_ / "nosuch.toml").error().kind, ErrorKind::kNotFound);
}

TEST_F(SpecTest, BadJobFilesNameFileLineKeyAndCure) {
  EXPECT_THAT(job_error("iteration_s = 0.1\n").text, HasSubstr("'phases' is missing"));
  EXPECT_THAT(job_error("iteration_s = 0\n[[phases]]\nname = \"a\"\nshare = 1\n").text,
              AllOf(HasSubstr("job.toml:1"), HasSubstr("iteration_s")));
  EXPECT_THAT(
      job_error("iteration_s = 1\n[[phases]]\nname = \"a\"\nshare = 1\nkind = \"gpu\"\n").text,
      AllOf(HasSubstr("job.toml:5"), HasSubstr("phases[0].kind"), HasSubstr("host")));
  EXPECT_THAT(job_error("iteration_s = 1\n[[phases]]\nname = \"a\"\nshare = 1\ncompte = 1\n").text,
              AllOf(HasSubstr("phases[0].compte"), HasSubstr("not known")));
  EXPECT_THAT(job_error("iteration_s = 1\nmeasured = \"nosuch\"\ntable = \"a100\"\n"
                        "[[phases]]\nname = \"a\"\nshare = 1\n")
                  .text,
              AllOf(HasSubstr("'measured'"), HasSubstr("nosuch")));
}

TEST_F(SpecTest, JobFileWithStagesVariantsAndMeasuredTableLoads) {
  ASSERT_TRUE(write_file_durably(folder_ / "job.toml", R"(
name = "mix"
iteration_s = 0.5
[noise]
jitter_cv = 0.01
[lengths]
scale = [1, 2]
weight = [3, 1]
[[stages]]
iterations = 100
measured = "LSTM"
table = "a100"
[[stages.variants]]
weight = 2
repeat = { first = 0, count = 1, times = 4 }
[[stages.variants.phases]]
name = "micro"
share = 0.2
[[stages.variants.phases]]
name = "update"
share = 0.2
[[stages]]
[[stages.phases]]
name = "other"
share = 1
)")
                  .has_value());
  const JobSpec job = expect_ok(load_job(folder_ / "job.toml"));
  ASSERT_EQ(job.stages.size(), 2U);
  EXPECT_NE(job.stages[0].measured, nullptr);
  EXPECT_EQ(job.stages[0].variants[0].repeats, 4);
  EXPECT_EQ(job.stages[1].variants[0].phases[0].name, "other");
  EXPECT_EQ(job.lengths.size(), 2U);
  EXPECT_TRUE(compile(job, testing::device("a100")).has_value());
}

TEST(DataDirectory, ComesFromTheEnvironmentFirst) {
  ASSERT_EQ(setenv("GPOEO_DATA_DIR", "/nonexistent", 1), 0);
  const auto wrong = data_directory();
  unsetenv("GPOEO_DATA_DIR");
  ASSERT_FALSE(wrong.has_value());
  EXPECT_THAT(wrong.error().text, HasSubstr("GPOEO_DATA_DIR=/nonexistent"));
  EXPECT_TRUE(data_directory().has_value()) << "found beside the test program";
}

}  // namespace
}  // namespace gpoeo::twin
