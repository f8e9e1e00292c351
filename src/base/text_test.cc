// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

namespace gpoeo {
namespace {

TEST(ParseDouble, TakesWholeFiniteNumbersOnly) {
  EXPECT_DOUBLE_EQ(parse_double(" 1.5e3 ").value(), 1500);
  for (const char* bad : {"", "  ", "12x", "nan", "inf", "1,5", "--1"}) {
    EXPECT_FALSE(parse_double(bad)) << bad;
  }
}

TEST(ParseInt, RefusesFractionsAndOverflow) {
  EXPECT_EQ(parse_int("-42").value(), -42);
  for (const char* bad : {"", "1.0", "99999999999999999999", "0x10"}) {
    EXPECT_FALSE(parse_int(bad)) << bad;
  }
}

TEST(ParseSlowdownLimit, ReadsThePercentFractionAndFactorForms) {
  for (const char* good : {"5%", "0.05", "1.05", " 5 % "}) {
    EXPECT_NEAR(parse_slowdown_limit(good).value(), 0.05, 1e-12) << good;
  }
  EXPECT_DOUBLE_EQ(parse_slowdown_limit("0").value(), 0);
}

TEST(ParseSlowdownLimit, RefusesWhatCouldBeMisread) {
  for (const char* bad : {"", "five", "5", "-5%", "100%", "250%", "2.0", "5%%", "nan%"}) {
    const auto limit = parse_slowdown_limit(bad);
    ASSERT_FALSE(limit) << bad;
    EXPECT_NE(limit.error().text.find("5%"), std::string::npos) << "the cure is named";
  }
}

TEST(Split, KeepsEmptyParts) {
  EXPECT_EQ(split("a,,b", ',').size(), 3U);
  EXPECT_EQ(split("", ',').size(), 1U);
}

}  // namespace
}  // namespace gpoeo
