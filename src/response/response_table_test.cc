// SPDX-License-Identifier: Apache-2.0
#include "response/response_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpoeo::response {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::string_view kHeader =
    "workload,sm_clock_mhz,mem_clock_mhz,power_limit_w,time_s,power_w";

ResponseTable parse(const std::string& text) {
  auto table = parse_response_table(text, "t.csv");
  EXPECT_TRUE(table) << (table ? "" : table.error().text);
  return table ? *table : ResponseTable{};
}

ResponseTable parse_rows(const std::string& rows) {
  return parse(std::string(kHeader) + "\n" + rows);
}

TEST(ResponseTable, ReadsSeveralWorkloadsAndTheirGrids) {
  const auto table = parse_rows(
      "a,1410,1215,,1.0,300\n"
      "b,900,5000,200,3,50\n"
      "a,705,1215,,1.5,200\n"
      "a,1410,405,,4.0,150\n");
  ASSERT_EQ(table.workloads.size(), 2U);
  const Workload& a = table.workloads[0];
  EXPECT_EQ(a.name, "a");
  ASSERT_EQ(a.points.size(), 3U);
  EXPECT_EQ(a.default_point().setting.sm_mhz, 1410);
  EXPECT_EQ(a.default_point().setting.mem_mhz, 1215);
  EXPECT_EQ(a.default_point().setting.power_limit_w, std::nullopt);
  EXPECT_EQ(a.default_point().energy_j(), 300.0);
  EXPECT_EQ(table.workloads[1].points[0].setting.power_limit_w, 200);
  EXPECT_EQ(table.find("b").value(), &table.workloads[1]);
}

TEST(ResponseTable, FindNamesWhatThereIs) {
  const auto table = parse_rows("alpha,1,,,1,1\nbeta,1,,,1,1\n");
  const auto missing = table.find("gamma");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(missing.error().text,
              AllOf(HasSubstr("t.csv"), HasSubstr("gamma"), HasSubstr("alpha, beta")));
}

TEST(ResponseTable, ColumnsComeInAnyOrderAndCountersAreOptional) {
  const auto table = parse(
      "power_w,dram_active,time_s,workload,sm_clock_mhz,pcie_tx_bytes_per_s\n"
      "100,0.25,2,a,1000,1e9\n"
      "90,,2.5,a,900,\n");
  const Workload& w = table.workloads.at(0);
  EXPECT_EQ(w.points[0].counters[Counter::kDramActive], 0.25);
  EXPECT_EQ(w.points[0].counters[Counter::kPcieTxBytesPerS], 1e9);
  EXPECT_EQ(w.points[1].counters[Counter::kDramActive], std::nullopt);
  EXPECT_EQ(w.points[0].counters[Counter::kTensorActive], std::nullopt);
}

TEST(ResponseTable, BomCrlfBlankAndCommentLinesAreFine) {
  const auto table = parse("\xef\xbb\xbf# from here\r\n\r\n" + std::string(kHeader) +
                           "\r\n  # and there\r\n a , 1000 ,,, 1.5 , 100 \r\n\r\n");
  EXPECT_EQ(table.workloads.at(0).name, "a");
  EXPECT_EQ(table.workloads[0].points[0].time_s, 1.5);
  EXPECT_THAT(table.comments, testing::ElementsAre("from here", "and there"));
}

TEST(ResponseTable, LastLineNeedsNoNewline) {
  EXPECT_EQ(parse_rows("a,1000,,,1,100").workloads.at(0).points.size(), 1U);
}

TEST(ResponseTable, RepeatsAreAveragedAndTheirScatterKept) {
  const auto table = parse_rows(
      "a,1000,,,1.0,100\n"
      "a,1000,,,1.2,\n"
      "a,1000,,,1.1,110\n"
      "a,900,,,2,90\n");
  const Point& p = table.workloads.at(0).points.at(0);
  EXPECT_EQ(p.repeats, 3);
  EXPECT_NEAR(*p.time_s, 1.1, 1e-12);
  EXPECT_NEAR(*p.time_scatter, 0.1 / 1.1, 1e-12);
  EXPECT_NEAR(*p.power_w, 105, 1e-12);
  EXPECT_NEAR(*p.power_scatter, 7.0710678 / 105, 1e-8);
  EXPECT_EQ(table.workloads[0].points[1].repeats, 1);
  EXPECT_EQ(table.workloads[0].points[1].time_scatter, std::nullopt);
}

TEST(ResponseTable, ARepeatFarFromThreeThatAgreeIsLeftOut) {
  const auto table = parse_rows(
      "a,1000,,,1.00,100\n"
      "a,1000,,,1.01,101\n"
      "a,1000,,,1.02,150\n"
      "a,1000,,,2.00,102\n"
      "b,1000,,,1.00,100\n"
      "b,1000,,,1.01,101\n"
      "b,1000,,,2.00,102\n");
  const Point& four = table.workloads.at(0).points.at(0);
  EXPECT_EQ(four.repeats, 4);
  EXPECT_EQ(four.left_out, 2);
  EXPECT_NEAR(*four.time_s, 1.01, 1e-12);
  EXPECT_NEAR(*four.power_w, 101, 1e-12);
  const Point& three = table.workloads.at(1).points.at(0);
  EXPECT_EQ(three.left_out, 0);
  EXPECT_NEAR(*three.time_s, 4.01 / 3, 1e-12);
}

TEST(ResponseTable, DefaultRowWinsOverHighestClocks) {
  const auto table = parse_rows(
      "a,2000,9501,,1.0,300\n"
      "a,default,default,,1.1,280\n");
  const Point& p = table.workloads.at(0).default_point();
  EXPECT_TRUE(p.setting.driver_clocks);
  EXPECT_EQ(p.time_s, 1.1);
}

TEST(ResponseTable, HighestMemoryClockCountsBeforeHighestSmClock) {
  const auto table = parse_rows(
      "a,2000,405,,9,100\n"
      "a,1500,9501,,1,300\n"
      "a,1400,9501,,1.1,280\n");
  EXPECT_EQ(table.workloads.at(0).default_point().time_s, 1.0);
}

TEST(ResponseTable, PowerLimitTablesTakeTheHighestLimitAsDefault) {
  const auto with_limits = parse_rows("a,default,default,100,2,90\na,default,default,250,1,200\n");
  EXPECT_EQ(with_limits.workloads.at(0).default_point().setting.power_limit_w, 250);
  const auto own_limit = parse_rows("a,,,100,2,90\na,default,default,,1,200\na,,,250,1.1,190\n");
  EXPECT_EQ(own_limit.workloads.at(0).default_point().time_s, 1.0);
  const auto unset_clocks = parse_rows("a,,,100,2,90\na,,,250,1,200\n");
  EXPECT_EQ(unset_clocks.workloads.at(0).default_point().time_s, 1.0);
}

struct BadCase {
  const char* name;
  std::string text;
  std::vector<std::string> message_has;
};

class BadTable : public testing::TestWithParam<BadCase> {};

TEST_P(BadTable, IsRefusedWithFileLineFieldAndCure) {
  const auto table = parse_response_table(GetParam().text, "t.csv");
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().kind, ErrorKind::kInvalid);
  for (const std::string& part : GetParam().message_has) {
    EXPECT_THAT(table.error().text, HasSubstr(part));
  }
  EXPECT_EQ(table.error().text.find('\n'), std::string::npos) << "one line";
}

std::string rows(const std::string& r) { return std::string(kHeader) + "\n" + r; }

INSTANTIATE_TEST_SUITE_P(
    Each, BadTable,
    testing::Values(
        BadCase{"Empty", "", {"t.csv", "header"}},
        BadCase{"OnlyComments", "# a\n#b\n", {"t.csv", "header"}},
        BadCase{"OnlyHeader", rows(""), {"t.csv", "at least one row"}},
        BadCase{"UnknownCounter",
                "workload,sm_clock_mhz,time_s,power_w,warp_active\n",
                {"t.csv:1:", "warp_active", "gr_active", "pcie_rx_bytes_per_s"}},
        BadCase{"ColumnTwice",
                "workload,sm_clock_mhz,time_s,time_s,power_w\n",
                {"t.csv:1:", "time_s", "twice"}},
        BadCase{"NoTimeColumn", "workload,sm_clock_mhz,power_w\n", {"t.csv:1:", "'time_s'"}},
        BadCase{"NoPowerColumn", "workload,sm_clock_mhz,time_s\n", {"t.csv:1:", "'power_w'"}},
        BadCase{"NoWorkloadColumn", "sm_clock_mhz,time_s,power_w\n", {"t.csv:1:", "'workload'"}},
        BadCase{
            "NothingSet", "workload,mem_clock_mhz,time_s,power_w\n", {"t.csv:1:", "sm_clock_mhz"}},
        BadCase{"TooFewFields", rows("a,1000,,,1\n"), {"t.csv:2:", "5 fields", "6"}},
        BadCase{"DecimalComma", rows("a,1000,,,1,5,100\n"), {"t.csv:2:", "7 fields", "'.'"}},
        BadCase{
            "NotANumber", rows("a,1000,,,fast,100\n"), {"t.csv:2:", "time_s", "fast", "seconds"}},
        BadCase{"HalfANumber",
                rows("a,1000MHz,,,1,100\n"),
                {"t.csv:2:", "sm_clock_mhz", "1000MHz", "MHz"}},
        BadCase{"NotFinite", rows("a,1000,,,nan,100\n"), {"t.csv:2:", "time_s"}},
        BadCase{"Infinite", rows("a,1000,,,1,inf\n"), {"t.csv:2:", "power_w"}},
        BadCase{"ZeroTime", rows("a,1000,,,0,100\n"), {"t.csv:2:", "time_s", "above 0"}},
        BadCase{"NegativePower", rows("a,1000,,,1,-3\n"), {"t.csv:2:", "power_w", "above 0"}},
        BadCase{"HugeClock", rows("a,1410000000,,,1,100\n"), {"t.csv:2:", "sm_clock_mhz", "MHz"}},
        BadCase{"BadMemoryClock", rows("a,1000,-1,,1,100\n"), {"t.csv:2:", "mem_clock_mhz"}},
        BadCase{"BadLimit", rows("a,1000,,x,1,100\n"), {"t.csv:2:", "power_limit_w", "watts"}},
        BadCase{"PercentCounter",
                "workload,sm_clock_mhz,time_s,power_w,sm_active\na,1000,1,100,97\n",
                {"t.csv:2:", "sm_active", "percent"}},
        BadCase{"NegativeRate",
                "workload,sm_clock_mhz,time_s,power_w,pcie_tx_bytes_per_s\na,1000,1,100,-1\n",
                {"t.csv:2:", "pcie_tx_bytes_per_s", "bytes per second"}},
        BadCase{"NoName", rows(",1000,,,1,100\n"), {"t.csv:2:", "workload"}},
        BadCase{"QuotedName", rows("\"a\",1000,,,1,100\n"), {"t.csv:2:", "workload", "quote"}},
        BadCase{"ControlCharacter", rows("a\x1b[31m,1000,,,1,100\n"), {"t.csv:2:", "a?[31m"}},
        BadCase{"LongName",
                rows(std::string(300, 'a') + ",1000,,,1,100\n"),
                {"t.csv:2:", "workload", "256"}},
        BadCase{
            "HalfDefault", rows("a,default,1215,,1,100\n"), {"t.csv:2:", "mem_clock_mhz", "both"}},
        BadCase{"OtherHalfDefault",
                rows("a,1410,default,,1,100\n"),
                {"t.csv:2:", "sm_clock_mhz", "both"}},
        BadCase{
            "NoSetting", rows("a,,1215,,1,100\n"), {"t.csv:2:", "sm_clock_mhz", "what was set"}},
        BadCase{"NothingMeasured", rows("a,1000,,,,\n"), {"t.csv:2:", "time_s", "power_w"}},
        BadCase{"DefaultWithoutTime",
                rows("a,1000,,,1,90\na,1100,,,,100\n"),
                {"t.csv", "'a'", "1100 MHz", "time_s"}},
        BadCase{"DefaultWithoutPower", rows("a,1000,,,1,\n"), {"t.csv", "'a'", "power_w"}},
        BadCase{"LineCountsComments", rows("# x\n\na,1000,,,bad,1\n"), {"t.csv:4:"}},
        BadCase{"Binary",
                std::string("\x7f"
                            "ELF\0\x01\xff",
                            7),
                {"t.csv:1:", "unknown column"}},
        BadCase{"EndlessLine", std::string(20'000, 'x'), {"t.csv:1:", "longer than"}}),
    [](const auto& param_info) { return param_info.param.name; });

TEST(ResponseTable, MissingFileIsNamed) {
  const auto table = read_response_table("no/such/table.csv");
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(table.error().text, HasSubstr("no/such/table.csv"));
}

}  // namespace
}  // namespace gpoeo::response
