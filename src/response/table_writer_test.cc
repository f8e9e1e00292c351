// SPDX-License-Identifier: Apache-2.0
#include "response/table_writer.h"

#include <gtest/gtest.h>

namespace gpoeo::response {
namespace {

TEST(TableWriter, WhatItWritesTheReaderTakes) {
  TableRow standard;
  standard.setting.driver_clocks = true;
  standard.setting.power_limit_w = 500;
  standard.time_s = 0.25;
  standard.power_w = 300.125;
  standard.counters[Counter::kDramActive] = 1.0000001;  // a sensor's rounding
  TableRow slow = standard;
  slow.setting = {.sm_mhz = 900, .mem_mhz = 1593, .power_limit_w = 500, .driver_clocks = false};
  slow.time_s = 1.0 / 3;
  TableRow again = slow;
  again.power_w.reset();
  const std::string name = valid_workload_name("a \"b\",\nc");
  const auto table = parse_response_table(comment_lines("made by a test\nof two lines") +
                                              header_line() + row_line(name, standard) +
                                              row_line(name, slow) + row_line(name, again),
                                          "test.csv");
  ASSERT_TRUE(table.has_value()) << table.error().text;
  EXPECT_EQ(table->comments.size(), 2U);
  ASSERT_EQ(table->workloads.size(), 1U);
  const Workload& workload = table->workloads[0];
  ASSERT_EQ(workload.points.size(), 2U);
  EXPECT_TRUE(workload.default_point().setting.driver_clocks);
  EXPECT_EQ(workload.default_point().setting.power_limit_w, 500);
  EXPECT_DOUBLE_EQ(*workload.default_point().power_w, 300.125);
  EXPECT_EQ(workload.default_point().counters[Counter::kDramActive], 1.0);
  EXPECT_FALSE(workload.default_point().counters[Counter::kFp16Active].has_value());
  EXPECT_EQ(workload.points[1].setting, slow.setting);
  EXPECT_EQ(workload.points[1].repeats, 2);
  EXPECT_NEAR(*workload.points[1].time_s, 1.0 / 3, 1e-7);
}

TEST(TableWriter, NamesAreMadeFitToRead) {
  EXPECT_EQ(valid_workload_name(" \t"), "job");
  EXPECT_EQ(valid_workload_name("#1"), "_1");
  EXPECT_EQ(valid_workload_name("python train.py --lr 0.1"), "python train.py --lr 0.1");
  EXPECT_EQ(valid_workload_name(std::string(500, 'x')).size(), 256U);
}

}  // namespace
}  // namespace gpoeo::response
