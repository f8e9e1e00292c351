// SPDX-License-Identifier: Apache-2.0
// The books where no iteration is counted: time at each setting over how long an iteration takes
// there. Numbers worked out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/ledger.h"
#include "control/testing/looks.h"

namespace gpoeo::control {
namespace {

using ::testing::HasSubstr;
using testing::look;

Instant at(double s) { return instant_from_ns(1'000'000'000'000) + to_duration(Seconds(s)); }
policy::ClockSetting sm(double mhz) { return {.sm = megahertz(mhz)}; }

report::Session closed(const Ledger& ledger) {
  report::Session session;
  session.duration_s = 200;
  ledger.close(session);
  return session;
}

TEST(LedgerByTraces, NetSavingFromTheTimeAtEachSetting) {
  Ledger ledger;
  ledger.traces_begin(at(0));  // 20 s at default clocks, 100 W; then 104 s at 80 W, 4 % slower
  ledger.add_setting(sm(1000), at(20));
  ledger.add_energy(0, at(0), at(20), Joules(2000), Joules(0));
  ledger.add_energy(0, at(20), at(124), Joules(104 * 80), Joules(0));
  ledger.add_observation(look({}, 0.5, 100));
  ledger.add_observation(look(1000, 0.52, 80));
  const auto s = closed(ledger);
  ASSERT_TRUE(s.saving) << s.no_saving_reason;
  // As much work takes 120 s and 12 kJ at default clocks.
  EXPECT_NEAR(s.saving->net_saving.value, 1 - (2000 + 104 * 80) / 12000.0, 1e-9);
  EXPECT_NEAR(s.saving->net_slowdown.value, 4 / 120.0, 1e-9);
  EXPECT_GT(s.saving->net_slowdown.error, 0.005) << "a comparison of traces is no count";
  EXPECT_EQ(s.iterations, 0U);
}

TEST(LedgerByTraces, IdlenessIsAPause) {
  const auto with_idle = [](bool idle) {
    Ledger ledger;
    ledger.traces_begin(at(0));
    ledger.add_setting(sm(1000), at(0));
    if (idle) {
      ledger.add_idle(true, at(104));
      ledger.add_idle(false, at(204));
    }
    ledger.add_energy(0, at(0), at(104), Joules(104 * 80), Joules(0));
    if (idle) ledger.add_energy(0, at(104), at(204), Joules(3000), Joules(0));
    ledger.add_observation(look({}, 0.5, 100));
    ledger.add_observation(look(1000, 0.52, 80));
    return closed(ledger);
  };
  EXPECT_NEAR(with_idle(false).saving->net_slowdown.value, 0.04, 1e-9);
  EXPECT_NEAR(with_idle(true).saving->net_slowdown.value, 0.02, 1e-9);
}

// Idle, and never read: the mean of what was read is assumed.
TEST(LedgerByTraces, IdlenessOfUnknownEnergyDrawsTheMean) {
  Ledger ledger;
  ledger.traces_begin(at(0));
  ledger.add_setting(sm(1000), at(0));
  ledger.add_idle(true, at(52));
  ledger.add_idle(false, at(152));
  ledger.add_energy(0, at(0), at(52), Joules(52 * 80), Joules(0));
  ledger.add_energy(0, at(152), at(204), Joules(52 * 80), Joules(0));
  ledger.add_observation(look({}, 0.5, 100));
  ledger.add_observation(look(1000, 0.52, 80));
  const auto s = closed(ledger);
  ASSERT_TRUE(s.saving) << s.no_saving_reason;
  EXPECT_NEAR(s.saving->net_saving.value, (10000 - 104 * 80) / (10000.0 + 8000), 1e-9);
}

TEST(LedgerByTraces, TimeAtASettingOfWhichNothingIsKnownIsNotCompared) {
  Ledger ledger;
  ledger.traces_begin(at(0));
  ledger.add_setting(sm(1000), at(20));
  ledger.add_energy(0, at(0), at(120), Joules(9000), Joules(0));
  ledger.add_observation(look({}, 0.5, 100));
  const auto s = closed(ledger);
  EXPECT_FALSE(s.saving);
  EXPECT_THAT(s.no_saving_reason, HasSubstr("20 s of 120 s"));
}

TEST(LedgerByTraces, OtherWorkHasABaselineOfItsOwn) {
  Ledger ledger;
  ledger.traces_begin(at(0));
  ledger.add_observation(look({}, 0.5, 100));
  ledger.add_energy(0, at(0), at(50), Joules(5000), Joules(0));
  ledger.new_phase(at(50));
  ledger.add_observation(look({}, 0.5, 300));
  ledger.add_setting(sm(1000), at(60));
  ledger.add_observation(look(1000, 0.5, 200));
  ledger.add_energy(0, at(50), at(60), Joules(3000), Joules(0));
  ledger.add_energy(0, at(60), at(110), Joules(10000), Joules(0));
  const auto s = closed(ledger);
  ASSERT_TRUE(s.saving) << s.no_saving_reason;
  EXPECT_NEAR(s.saving->net_saving.value, 1 - 18000.0 / (5000 + 3000 + 15000), 1e-9);
}

TEST(LedgerByTraces, BeforeABaselineNothing) {
  Ledger ledger;
  ledger.traces_begin(at(0));
  ledger.add_energy(0, at(0), at(50), Joules(5000), Joules(0));
  EXPECT_THAT(closed(ledger).no_saving_reason, HasSubstr("before a baseline"));
}

// What was counted counts: traces were only a stopgap.
TEST(LedgerByTraces, CountedIterationsComeFirst) {
  Ledger ledger;
  ledger.traces_begin(at(0));
  ledger.add_observation(look({}, 7, 100));
  ledger.new_phase(at(50));
  std::vector<Instant> ends;
  for (int i = 0; i < 51; ++i) ends.push_back(at(60 + i));
  ledger.add_iteration_ends(ends);
  ledger.add_energy(0, at(0), at(120), Joules(120 * 80), Joules(0));
  ledger.add_observation(look({}, 1.0, 100));
  const auto s = closed(ledger);
  ASSERT_TRUE(s.saving) << s.no_saving_reason;
  EXPECT_NEAR(s.saving->net_saving.value, 0.2, 1e-9);
  EXPECT_NEAR(s.saving->net_slowdown.value, 0, 1e-9);
}

}  // namespace
}  // namespace gpoeo::control
