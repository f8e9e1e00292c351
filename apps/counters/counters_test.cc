// SPDX-License-Identifier: Apache-2.0
// gpoeo-counters itself, over a driver and a CUPTI of our own (no GPU).
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "control/tool_process.h"
#include "cupti/pm_abi.h"
#include "loaded_library.h"

namespace gpoeo::counters {
namespace {

using ::testing::HasSubstr;

constexpr char kCupti[] = GPOEO_FAKE_CUPTI;

// What it answers when `cupti` is tried first; `rest` follows on the command line.
nlohmann::json answer_of(const std::string& gpu, std::vector<std::string> rest,
                         const std::string& cupti = kCupti, bool close_input = false) {
  const std::string list = ::testing::TempDir() + "/gpoeo_counters_list";
  std::ofstream(list) << "chip GH100\npass\nsm_active sm__cycles.avg.pct_of_peak\n"
                         "l1_hit_rate never__happened.ratio\npass\n"
                         "pcie_tx_bytes_per_s pcie__write.sum.per_second\n";
  ::setenv("LD_LIBRARY_PATH", GPOEO_FAKE_DRIVER_DIR, 1);
  std::vector<std::string> command{GPOEO_COUNTERS, "--gpu",   gpu,  "--metrics",
                                   list,           "--cupti", cupti};
  command.insert(command.end(), rest.begin(), rest.end());
  auto tool = control::ToolProcess::start(command);
  if (!tool) return tool.error().text;
  if (close_input) tool->stop();
  for (int tries = 0; tries < 3000; ++tries) {
    if (const auto text = tool->poll())
      return nlohmann::json::parse(text->value_or(""), nullptr, false);
    ::usleep(5000);  // another process, on wall time
  }
  return "it did not end";
}

TEST(CountersProgram, SamplesEachPassAndNamesWhatItFound) {
  const auto answer = answer_of("GPU-0", {"--seconds", "1"});
  ASSERT_TRUE(answer.is_object()) << answer;
  EXPECT_EQ(answer["chip"], "GH100");
  EXPECT_EQ(answer["passes"], 2);
  EXPECT_EQ(answer["values"]["sm_active"], 0.5) << "a share, not per cent";
  EXPECT_EQ(answer["values"]["pcie_tx_bytes_per_s"], 50);
  EXPECT_FALSE(answer["values"].contains("l1_hit_rate")) << "no sample has a value of it";
  EXPECT_GT(answer["end_unix_ns"], answer["begin_unix_ns"]);
}

TEST(CountersProgram, EndsEarlyWhenItsInputCloses) {
  const auto answer = answer_of("GPU-0", {"--seconds", "60", "--until-input-closes"}, kCupti, true);
  ASSERT_TRUE(answer.is_object()) << answer << ": and not after a minute";
  EXPECT_LT(answer.value("passes", 0), 2);
}

TEST(CountersProgram, ByHandItsInputMayBeAnything) {
  EXPECT_EQ(answer_of("GPU-0", {"--seconds", "1"}, kCupti, true)["passes"], 2);
}

TEST(CountersProgram, NumbersThatAreNoneAreRefused) {
  EXPECT_FALSE(answer_of("GPU-0", {"--iteration", "nan"}).is_object());
  EXPECT_FALSE(answer_of("GPU-0", {"--seconds", "nan"}).is_object());
}

TEST(CountersProgram, WithoutATimerItCountsCycles) {
  ::setenv("FAKE_PM_NO_TIMER", "1", 1);
  const auto answer = answer_of("GPU-0", {"--seconds", "1"});
  ::unsetenv("FAKE_PM_NO_TIMER");
  ASSERT_TRUE(answer.is_object()) << answer;
  EXPECT_EQ(answer["values"]["sm_active"], 0.5);
}

TEST(CountersProgram, ARefusalIsToldByItsReasonAlsoWhenOnlyChecking) {
  const std::pair<int, const char*> kRefusals[] = {{cupti::pm::kInsufficientPrivileges, "NVreg"},
                                                   {cupti::pm::kHardwareBusy, "another profiler"},
                                                   {cupti::pm::kMigDevice, "not on this GPU"},
                                                   {999, "failed with 999"}};
  for (const auto& [code, reason] : kRefusals) {
    ::setenv("FAKE_PM_REFUSES", std::to_string(code).c_str(), 1);
    EXPECT_THAT(answer_of("GPU-0", {"--seconds", "1"})["error"], HasSubstr(reason));
    EXPECT_THAT(answer_of("GPU-0", {"--check"})["error"], HasSubstr(reason));
  }
  ::unsetenv("FAKE_PM_REFUSES");
}

TEST(CountersProgram, LostSamplesAreNoReading) {
  ::setenv("FAKE_PM_OVERFLOWS", "1", 1);
  EXPECT_TRUE(answer_of("GPU-0", {"--seconds", "1"}).contains("error"));
  ::unsetenv("FAKE_PM_OVERFLOWS");
}

TEST(CountersProgram, APassIsWholeIterationsOfAtLeastHalfASecond) {
  const auto passes_of = [](const char* iteration) {
    const auto answer = answer_of("GPU-0", {"--seconds", "1", "--iteration", iteration});
    return answer["covered_s"].get<double>() / answer["passes"].get<double>();
  };
  EXPECT_NEAR(passes_of("0.3"), 0.6, 0.03);
  EXPECT_NEAR(passes_of("0.8"), 0.8, 0.03);
  EXPECT_NEAR(passes_of("3"), 0.5, 0.03) << "a part of it";
}

class LoadedCupti : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/gpoeo_loaded_XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name + "/d\xe9r";  // no UTF-8
    std::filesystem::create_directory(folder_);
    library_ = folder_ + "/libcupti.so.12";
    std::filesystem::copy_file(kCupti, library_);
    ::chmod(library_.c_str(), 0755);
    handle_ = ::dlopen(library_.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(handle_, nullptr);
  }
  void TearDown() override {
    ::dlclose(handle_);
    std::filesystem::remove_all(std::filesystem::path(folder_).parent_path());
  }
  static std::string used(std::int64_t job) {
    return answer_of("GPU-0", {"--check", "--job", std::to_string(job)}, "/nonexistent")
        .value("cupti", "");
  }
  std::string folder_, library_;
  void* handle_ = nullptr;
};

TEST_F(LoadedCupti, OfTheJobIsTriedFirst) {
  EXPECT_THAT(used(::getpid()), HasSubstr("libcupti.so.12"));
  EXPECT_EQ(loaded_library(::getpid(), "libcupti"), std::filesystem::canonical(library_).string());
  EXPECT_EQ(loaded_library(::getpid(), "libnothing-like-it"), "");
  EXPECT_EQ(loaded_library(-1, "libcupti"), "");
}

TEST_F(LoadedCupti, ThatOthersMayWriteToIsNotTrusted) {
  ::chmod(library_.c_str(), 0777);
  EXPECT_EQ(loaded_library(::getpid(), "libcupti"), "");
  std::filesystem::remove(library_);
  EXPECT_EQ(loaded_library(::getpid(), "libcupti"), "") << "deleted";
}

TEST(CountersProgram, ACheckSamplesNothing) {
  const auto answer = answer_of("GPU-0", {"--check"});
  ASSERT_TRUE(answer.is_object()) << answer;
  EXPECT_EQ(answer["passes"], 2);
  EXPECT_FALSE(answer.contains("error"));
}

TEST(CountersProgram, TakesTheCuptiThatItIsGivenAndPassesOverWhatHasNoPmSampling) {
  const auto answer = answer_of(
      "GPU-0", {"--check", "--cupti", GPOEO_FAKE_OLD_CUPTI, "--cupti", kCupti}, "/nonexistent");
  ASSERT_TRUE(answer.is_object()) << answer;
  EXPECT_EQ(answer["cupti"], kCupti);
}

TEST(CountersProgram, SaysWhatIsMissing) {
  EXPECT_THAT(answer_of("GPU-gone", {"--check"})["error"], HasSubstr("GPU-gone"));
  EXPECT_THAT(answer_of("GPU-0", {"--check", "--metrics", "/nonexistent"})["error"],
              HasSubstr("/nonexistent"));
}

TEST(CountersProgram, WithoutACuptiItNamesTheCure) {
  if (std::filesystem::exists("/usr/local/cuda")) GTEST_SKIP() << "a CUPTI is installed here";
  EXPECT_THAT(answer_of("GPU-0", {"--check"}, "/nonexistent")["error"], HasSubstr("12.6"));
}

}  // namespace
}  // namespace gpoeo::counters
