// SPDX-License-Identifier: Apache-2.0
#include "report/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace gpoeo::report {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

Session complete() {
  Session s;
  s.gpoeo_version = "1.0";
  s.driver_version = "580";
  s.command = "python train.py";
  s.policy = "search";
  s.max_slowdown = 0.05;
  s.exit_code = 3;
  s.duration_s = 125;
  GpuSection gpu{.index = 1, .uuid = "GPU-77", .name = "A100"};
  gpu.energy_j = 12345;
  gpu.mean_power_w = 98.7;
  gpu.energy_source = "energy counter";
  gpu.clocks_found = "not locked";
  gpu.clocks_restored = "not locked";
  gpu.unavailable = {"counters"};
  s.gpus = {gpu};
  s.progress_source = "step marks";
  s.iterations = 500;
  s.baseline =
      BaselineSection{.time_s = {0.25, 0.001}, .energy_j = {60, 0.2}, .windows = 2, .seconds = 12};
  s.saving = SavingSection{.net_saving = {0.181, 0.004},
                           .net_slowdown = {0.021, 0.003},
                           .held_saving = Figure{0.2, 0.004},
                           .held_slowdown = Figure{0.024, 0.003}};
  s.held_sm_mhz = 1200;
  s.time_to_hold_s = 42;
  s.exploring_s = 44;
  s.clock_writes = 7;
  s.decisions = {{.at_s = 2, .purpose = "baseline", .setting = "default clocks", .why = "so"}};
  s.notes = {"a note"};
  return s;
}

TEST(RenderText, SaysWhatWasMeasured) {
  const std::string text = to_text(complete());
  for (const char* part : {"python train.py",
                           "exit 3",
                           "2 min 5 s",
                           "search",
                           "5 %",
                           "A100",
                           "GPU-77",
                           "12.3 kJ",
                           "99 W",
                           "energy counter",
                           "counters",
                           "500 (from the step marks)",
                           "+18.1 % ± 0.7",
                           "+2.1 % ± 0.5",
                           "SM 1200 MHz",
                           "+20.0 %",
                           "7 clock writes",
                           "a note",
                           "2 windows",
                           "restored to not locked"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_EQ(text.back(), '\n');
}

TEST(RenderText, SaysSimulatedWhenItIsAndNeverElse) {
  Session s = complete();
  EXPECT_THAT(to_text(s), Not(HasSubstr("SIMULATED")));
  EXPECT_THAT(to_text(s), Not(HasSubstr("imulat")));
  s.simulated = true;
  EXPECT_THAT(to_text(s), HasSubstr("SIMULATED"));
}

// Without anything measured no figure may stand there as if it were.
TEST(RenderText, UnknownIsNeverZero) {
  Session s;
  s.command = "true";
  s.policy = "search";
  s.max_slowdown = 0.05;
  s.no_saving_reason = "the job ended before a baseline at default clocks was measured";
  GpuSection gpu{.index = 0, .uuid = "GPU-1", .name = "A100"};
  gpu.energy_source_reason = "no readings yet";
  s.gpus = {gpu};
  const std::string text = to_text(s);
  for (const char* part : {"unknown: no readings yet", "unknown: the job ended before a baseline",
                           "none seen", "never touched"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  for (const char* part : {"0 J", "0 W", "+0.0 %", "0 MHz", "baseline  "}) {
    EXPECT_THAT(text, Not(HasSubstr(part)));
  }
  // Energy without a mean power.
  s.gpus[0].energy_j = 500;
  s.gpus[0].energy_source = "energy counter";
  EXPECT_THAT(to_text(s), HasSubstr("500 J"));
  EXPECT_THAT(to_text(s), Not(HasSubstr("0 W")));
  // The simulator knows of a saving at the held clock, but of no time.
  s.truth = TruthSection{.net_saving = 0.1,
                         .net_slowdown = 0.02,
                         .held_saving = 0.12,
                         .held_slowdown = {},
                         .energy_j = 900,
                         .iterations = 5};
  EXPECT_THAT(to_text(s), Not(HasSubstr("+0.0 % time")));
}

TEST(RenderText, AFailedRestoreIsLoudAndNamesTheCure) {
  Session s = complete();
  s.gpus[0].restore_failed = true;
  const std::string text = to_text(s);
  EXPECT_THAT(text, HasSubstr("NOT RESTORED"));
  EXPECT_THAT(text, HasSubstr("gpoeo reset"));
  EXPECT_THAT(text, Not(HasSubstr("restored to")));
}

TEST(RenderText, ALossIsNotCalledASaving) {
  Session s = complete();
  s.saving->net_saving = {-0.02, 0.004};
  EXPECT_THAT(to_text(s), HasSubstr("-2.0 %"));
}

TEST(RenderJson, ParsesAndHoldsTheFigures) {
  const json j = json::parse(to_json(complete()));
  EXPECT_EQ(j["simulated"], false);
  EXPECT_EQ(j["exit_code"], 3);
  EXPECT_EQ(j["iterations"], 500);
  EXPECT_EQ(j["gpus"][0]["energy_j"], 12345.0);
  EXPECT_EQ(j["saving"]["net_saving"]["value"], 0.181);
  EXPECT_EQ(j["saving"]["net_saving"]["standard_error"], 0.004);
  EXPECT_EQ(j["held_sm_mhz"], 1200.0);
  EXPECT_EQ(j["no_saving_reason"], nullptr);
  EXPECT_EQ(j["decisions"][0]["purpose"], "baseline");
  EXPECT_EQ(j["notes"][0], "a note");
}

TEST(RenderJson, UnknownIsNullAndListsAreLists) {
  Session s;
  s.no_saving_reason = "no iterations were seen";
  s.gpus = {GpuSection{.index = 0, .uuid = "GPU-1", .name = "A100"}};
  json j = json::parse(to_json(s));
  for (const char* key : {"saving", "baseline", "held_sm_mhz", "time_to_hold_s", "twin_truth",
                          "measure_only_reason"}) {
    ASSERT_TRUE(j.contains(key)) << key;
    EXPECT_TRUE(j[key].is_null()) << key;
  }
  EXPECT_EQ(j["no_saving_reason"], "no iterations were seen");
  for (const char* key : {"energy_j", "mean_power_w", "clocks_restored"}) {
    EXPECT_TRUE(j["gpus"][0][key].is_null()) << key;
  }
  s.gpus.clear();
  j = json::parse(to_json(s));
  for (const char* key : {"gpus", "decisions", "notes"}) {
    EXPECT_TRUE(j[key].is_array() && j[key].empty()) << key << ": " << j[key];
  }
}

TEST(RenderJson, AnyBytesInACommandAreFine) {
  Session s = complete();
  s.command = "a \"b\" \\ \n \xff\xfe";
  json j;
  ASSERT_NO_THROW(j = json::parse(to_json(s)));
  EXPECT_TRUE(j["command"].get<std::string>().starts_with("a \"b\" \\ \n "));
}

TEST(RenderJson, FiguresThatAreNotFiniteAreNull) {
  Session s = complete();
  s.saving->net_saving.error = std::numeric_limits<double>::quiet_NaN();
  const json j = json::parse(to_json(s));
  EXPECT_TRUE(j["saving"]["net_saving"]["standard_error"].is_null());
}

TEST(Format, EnergyDurationPercent) {
  EXPECT_EQ(format_energy(450), "450 J");
  EXPECT_EQ(format_energy(12345), "12.3 kJ");
  EXPECT_EQ(format_energy(1.2e6), "1.20 MJ");
  EXPECT_EQ(format_duration(75), "75.0 s");
  EXPECT_EQ(format_duration(725), "12 min 5 s");
  EXPECT_EQ(format_duration(7380), "2 h 3 min");
  EXPECT_EQ(format_percent({0.198, 0.0024}), "+19.8 % ± 0.4");
}

}  // namespace
}  // namespace gpoeo::report
