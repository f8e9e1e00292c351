// SPDX-License-Identifier: Apache-2.0
// The shipped suite holds what it promises, and a bad suite is refused with file, key and cure.
#include "twin/job_suite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/file.h"
#include "twin/data_files.h"
#include "twin/testing/fixtures.h"

namespace gpoeo::twin {
namespace {

using ::testing::AllOf;
using testing::expect_ok;
using ::testing::HasSubstr;

TEST(Twin71, HoldsThePublishedMixWithPeriodsThatSensorsResolve) {
  const JobSuite suite = expect_ok(find_suite("twin-71"));
  EXPECT_EQ(suite.device, "rtx3080ti");
  EXPECT_THAT(suite.about, HasSubstr("generated"));
  ASSERT_EQ(suite.jobs.size(), 71U);
  std::map<std::string, int> families;
  for (const SuiteJob& job : suite.jobs) {
    ++families[job.family];
    EXPECT_GE(job.spec.iteration_s, 0.05) << job.spec.name;
    EXPECT_LE(job.spec.iteration_s, 3.0) << job.spec.name;
  }
  EXPECT_EQ(families["AIBench"], 17);
  EXPECT_EQ(families["benchmarking-gnns"], 54);
  EXPECT_EQ(expect_ok(suite.find("GCN_zinc"))->spec.name, "gcn_zinc");
  EXPECT_EQ(expect_ok(find_job("rtx3080ti", "twin-71/gcn_zinc")).name, "gcn_zinc");
  EXPECT_THAT(find_job("rtx3080ti", "twin-71/nosuch").error().text, HasSubstr("gcn_zinc"));
}

TEST(Twin71, EveryNumberHasItsReasonBesideIt) {
  std::istringstream lines(
      expect_ok(read_file(expect_ok(data_directory()) / "suites" / "twin-71.toml")));
  int checked = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto equals = line.find(" = ");
    if (line.starts_with("#") || equals == std::string::npos || line[equals + 3] == '"') continue;
    EXPECT_NE(line.find("  # "), std::string::npos) << line;
    ++checked;
  }
  EXPECT_GT(checked, 71 * 20);
}

// Falling clocks cost time and never more than in proportion; activities stay fractions; all draw
// less at a low clock.
TEST(Twin71, AnswersSanelyAtEveryClock) {
  const DeviceModel device = testing::quiet_device("rtx3080ti");
  for (const SuiteJob& job : expect_ok(find_suite("twin-71")).jobs) {
    SCOPED_TRACE(job.spec.name);
    const auto work = expect_ok(compile(job.spec, device));
    const auto cost = [&](int memory, int sm) {
      double seconds = 0, joules = 0;
      for (int p = 0; p < work->phase_count; ++p) {
        const PhasePoint& point = work->point(p, device.pair(memory, sm));
        seconds += point.duration_s;
        joules += point.duration_s * static_cast<double>(point.power_w);
        for (std::size_t a = 0; a <= static_cast<std::size_t>(Activity::kFp16Active); ++a) {
          EXPECT_GE(point.activity[a], 0.0F);
          EXPECT_LE(point.activity[a], 1.0F);
        }
      }
      return std::pair(seconds, joules / seconds);
    };
    const auto [seconds, watts] = cost(0, device.default_sm);
    EXPECT_NEAR(seconds, job.spec.iteration_s, 1e-9);
    EXPECT_LT(watts, 1.25 * device.limit_default_w);
    for (int sm = 1; sm < device.sm_clock_count; ++sm)
      EXPECT_LE(cost(0, sm).first, cost(0, sm - 1).first + 1e-12);
    const int low = device.default_sm / 2;
    const double slower =
        static_cast<double>(device.sm_mhz[static_cast<std::size_t>(device.default_sm)]) /
        device.sm_mhz[static_cast<std::size_t>(low)];
    EXPECT_LE(cost(0, low).first, seconds * slower * 1.0001);
    EXPECT_LT(cost(0, low).second, watts);
    // 9501 to 5001 MHz: never more than in proportion, and less power.
    EXPECT_LE(cost(2, device.default_sm).first, seconds * 9501 / 5001 * 1.0001);
    EXPECT_LT(cost(2, device.default_sm).second, watts - 20);
  }
}

TEST(Suites, BadOnesAreRefusedWithFileKeyAndCure) {
  std::string folder = ::testing::TempDir() + "/suite-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::filesystem::path file = std::filesystem::path(folder) / "mine.toml";
  const auto error = [&](const std::string& text) {
    EXPECT_TRUE(write_file_durably(file, text).has_value());
    const auto loaded = load_suite(file);
    EXPECT_FALSE(loaded.has_value()) << "should have been refused";
    return loaded ? std::string() : loaded.error().text;
  };
  const std::string job =
      "[[jobs]]\nname = \"a\"\niteration_s = 0.1\n[[jobs.phases]]\nname = \"k\"\nshare = 1\n";
  const std::string head = "device = \"a100\"\n";
  EXPECT_THAT(error(head), AllOf(HasSubstr("mine.toml"), HasSubstr("'jobs'")));
  EXPECT_THAT(error(job), HasSubstr("'device'"));
  EXPECT_THAT(error(head + job + job), AllOf(HasSubstr("jobs[1].name"), HasSubstr("rename")));
  EXPECT_THAT(error(head + job + "comptue = 1\n"), HasSubstr("comptue"));
  EXPECT_THAT(find_suite("nosuch").error().text, HasSubstr("twin-71"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace gpoeo::twin
