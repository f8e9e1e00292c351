// SPDX-License-Identifier: Apache-2.0
// The books on numbers worked out by hand.
#include "control/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gpoeo::control {
namespace {

using ::testing::HasSubstr;

Instant at(double s) { return instant_from_ns(1'000'000'000'000) + to_duration(Seconds(s)); }

policy::Observation window(std::optional<double> mhz, double at_s, double time_s, double energy_j) {
  policy::Observation o;
  if (mhz) o.setting.sm = megahertz(*mhz);
  o.at = Seconds(at_s);
  o.iterations = 10;
  o.time = Seconds(time_s);
  o.time_error = Seconds(0.001 * time_s);
  o.energy = Joules(energy_j);
  o.energy_error = Joules(0.001 * energy_j);
  return o;
}

void iterate(Ledger& ledger, double from_s, double each_s, int ends) {
  for (int i = 0; i < ends; ++i) {
    const Instant end = at(from_s + i * each_s);
    ledger.add_iteration_ends(std::span(&end, 1));
  }
}

report::Session closed(const Ledger& ledger, double duration_s = 100) {
  report::Session session;
  session.duration_s = duration_s;
  ledger.close(session);
  return session;
}

TEST(Ledger, NetSavingOfOnePhase) {
  Ledger ledger;
  // 100 iterations of 1.02 s at 80 W, against 1 s and 100 J at default clocks.
  iterate(ledger, 0, 1.02, 101);
  ledger.add_energy(0, at(-5), at(200), Joules(205 * 80), Joules(0));
  ledger.add_observation(window({}, 5, 1.0, 100));
  const auto s = closed(ledger);
  ASSERT_TRUE(s.saving);
  EXPECT_EQ(s.iterations, 101U);
  EXPECT_NEAR(s.saving->net_saving.value, 1 - 102.0 * 80 / 10000, 1e-9);
  EXPECT_NEAR(s.saving->net_slowdown.value, 0.02, 1e-9);
  // 0.1 % of the window and 0.3 % of drift.
  EXPECT_NEAR(s.saving->net_slowdown.error, 1.02 * std::hypot(0.0015, 0.003), 6e-4);
  EXPECT_NEAR(s.baseline->time_s.value, 1.0, 1e-12);
  EXPECT_NEAR(s.baseline->seconds, 10, 1e-9);
  EXPECT_FALSE(s.saving->held_saving);
  EXPECT_FALSE(s.held_sm_mhz);
}

TEST(Ledger, NothingIsSavedBeforeABaseline) {
  Ledger ledger;
  iterate(ledger, 0, 1, 30);
  ledger.add_energy(0, at(0), at(30), Joules(3000), Joules(1));
  ledger.add_observation(window(1200, 5, 1.0, 80));
  const auto s = closed(ledger);
  EXPECT_FALSE(s.saving);
  EXPECT_FALSE(s.baseline);
  EXPECT_THAT(s.no_saving_reason, HasSubstr("before a baseline"));
}

TEST(Ledger, NoIterationsIsSaid) {
  const auto s = closed(Ledger());
  EXPECT_FALSE(s.saving);
  EXPECT_THAT(s.no_saving_reason, HasSubstr("no iterations"));
}

// A baseline without a single reading of energy behind the iterations is no 100 % saving.
TEST(Ledger, WithoutEnergyNoSavingIsClaimed) {
  Ledger ledger;
  iterate(ledger, 0, 1, 30);
  ledger.add_observation(window({}, 5, 1.0, 100));
  const auto s = closed(ledger);
  EXPECT_FALSE(s.saving);
  EXPECT_FALSE(s.no_saving_reason.empty());
}

// Half of the time has no energy reading: what was read must not be taken for all of it.
TEST(Ledger, AHoleInTheEnergyIsNoSaving) {
  // 50 iterations at the baseline's 100 J, of which the energy of the last `hole_s` was never read.
  const auto with_hole = [](double hole_s) {
    Ledger ledger;
    iterate(ledger, 0, 1, 51);
    ledger.add_energy(0, at(0), at(50 - hole_s), Joules((50 - hole_s) * 100), Joules(1));
    ledger.add_observation(window({}, 5, 1.0, 100));
    return closed(ledger);
  };
  const auto small = with_hole(4);
  ASSERT_TRUE(small.saving) << "a small hole is filled with the mean power";
  EXPECT_NEAR(small.saving->net_saving.value, 0, 1e-9);
  EXPECT_GT(small.saving->net_saving.error, with_hole(0).saving->net_saving.error);
  const auto large = with_hole(10);
  EXPECT_FALSE(large.saving);
  EXPECT_NE(large.no_saving_reason.find("could not be read"), std::string::npos);
}

TEST(Ledger, AHoleOfOneGpuIsNotCoveredByAnother) {
  Ledger ledger;
  iterate(ledger, 0, 1, 51);
  ledger.add_energy(0, at(0), at(50), Joules(2500), Joules(1));
  ledger.add_energy(1, at(0), at(25), Joules(1250), Joules(1));
  ledger.add_observation(window({}, 5, 1.0, 100));
  EXPECT_FALSE(closed(ledger).saving);
}

TEST(Ledger, EachPhaseHasItsOwnBaseline) {
  Ledger ledger;
  iterate(ledger, 0, 1, 51);  // 50 s at 80 W; 100 J by default
  ledger.add_energy(0, at(0), at(50), Joules(4000), Joules(0));
  ledger.add_observation(window({}, 5, 1.0, 100));
  ledger.new_phase();
  ledger.add_energy(0, at(50), at(60), Joules(700), Joules(0));  // between the phases: nobody's
  iterate(ledger, 60, 2, 26);                                    // 50 s at 90 W; 400 J by default
  ledger.add_energy(0, at(60), at(110), Joules(4500), Joules(0));
  ledger.add_observation(window({}, 65, 2.0, 400));
  const auto s = closed(ledger);
  ASSERT_TRUE(s.saving);
  EXPECT_NEAR(s.saving->net_saving.value, 1 - 8500.0 / (50 * 100 + 25 * 400), 1e-9);
  EXPECT_NEAR(s.saving->net_slowdown.value, 0, 1e-9);
  EXPECT_EQ(s.iterations, 77U);
}

TEST(Ledger, APauseCountsAsWhatItWas) {
  Ledger ledger;
  iterate(ledger, 0, 1, 51);
  iterate(ledger, 150, 1, 51);  // 100 s of validation at another power between
  ledger.add_energy(0, at(0), at(50), Joules(4000), Joules(0));
  ledger.add_energy(0, at(50), at(150), Joules(30000), Joules(0));
  ledger.add_energy(0, at(150), at(200), Joules(4000), Joules(0));
  ledger.add_observation(window({}, 5, 1.0, 100));
  const auto s = closed(ledger);
  ASSERT_TRUE(s.saving);
  EXPECT_NEAR(s.saving->net_slowdown.value, 0, 1e-9);
  // 2 kJ of the 40 kJ that the whole would have used at default clocks.
  EXPECT_NEAR(s.saving->net_saving.value, 0.05, 1e-9);
  EXPECT_EQ(s.iterations, 102U);
}

// Two kinds of work in turn, each at its held clock: A saves 20 % and loses 4 %, B saves 10 %.
class LedgerOfTwo : public ::testing::Test {
 protected:
  // 50 iterations of 1.04 s at 80 J, against 1 s and 100 J.
  void a() { spell(1.04, 50, 80); }
  // 25 of 2 s at 360 J, against 2 s and 400 J.
  void b() { spell(2, 25, 360); }
  void spell(double each_s, int iterations, double each_j) {
    iterate(ledger_, now_s_ + each_s, each_s, iterations + 1);
    const double to_s = now_s_ + each_s * (iterations + 1);
    ledger_.add_energy(0, at(now_s_), at(to_s), Joules(each_j * (iterations + 1)), Joules(0));
    now_s_ = to_s;
  }
  // Their truth: so many spells of each.
  static void expect_truth(const report::Session& s, int a, int b) {
    ASSERT_TRUE(s.saving) << s.no_saving_reason;
    const double used = a * 50 * 80 + b * 25 * 360, by_default = a * 50 * 100 + b * 25 * 400;
    EXPECT_NEAR(s.saving->net_saving.value, 1 - used / by_default, 1e-9);
    EXPECT_NEAR(s.saving->net_slowdown.value, a * 2.0 / (a * 50 + b * 50), 1e-9);
    EXPECT_LT(s.saving->net_saving.error, 0.01) << "nothing in it is a pause";
  }

  Ledger ledger_;
  double now_s_ = 0;
};

TEST_F(LedgerOfTwo, OtherWorkBetweenIsNoPause) {
  a();
  ledger_.add_observation(window({}, 5, 1.0, 100));
  ledger_.new_phase();
  b();
  ledger_.add_observation(window({}, 65, 2.0, 400));
  ledger_.resume_phase(0, at(now_s_ + 0.1));
  a();
  expect_truth(closed(ledger_), 2, 1);
}

TEST_F(LedgerOfTwo, NorIsItWhenBothReturn) {
  a();
  ledger_.add_observation(window({}, 5, 1.0, 100));
  ledger_.new_phase();
  b();
  ledger_.add_observation(window({}, 65, 2.0, 400));
  ledger_.resume_phase(0, at(now_s_ + 0.1));
  a();
  ledger_.resume_phase(1, at(now_s_ + 0.1));
  b();
  expect_truth(closed(ledger_), 2, 2);
}

// A pause within one of them still is one: 100 s and 2 kJ in which nothing was saved.
TEST_F(LedgerOfTwo, APauseWithinOneOfThemIsCountedOnce) {
  a();
  ledger_.add_observation(window({}, 5, 1.0, 100));
  ledger_.add_energy(0, at(now_s_), at(now_s_ + 98.96), Joules(1920), Joules(0));
  now_s_ += 98.96;  // with the iteration that follows: 100 s and 2 kJ
  a();
  ledger_.new_phase();
  b();
  ledger_.add_observation(window({}, 265, 2.0, 400));
  ledger_.resume_phase(0, at(now_s_ + 0.1));
  a();
  const auto s = closed(ledger_);
  ASSERT_TRUE(s.saving) << s.no_saving_reason;
  EXPECT_NEAR(s.saving->net_saving.value, 4000.0 / (25000 + 2000), 1e-9);
  EXPECT_NEAR(s.saving->net_slowdown.value, 6.0 / (200 + 100), 1e-9);
}

// Other work without a baseline saved nothing that could be told: like a pause.
TEST_F(LedgerOfTwo, WorkWithoutABaselineBetweenCountsAsAPause) {
  a();
  ledger_.add_observation(window({}, 5, 1.0, 100));
  ledger_.new_phase();
  spell(10, 9, 1000);
  ledger_.resume_phase(0, at(now_s_ + 0.1));
  a();
  const auto s = closed(ledger_);
  ASSERT_TRUE(s.saving) << s.no_saving_reason;
  EXPECT_NEAR(s.saving->net_slowdown.value, 4.0 / (100 + 101.04), 1e-9);
  EXPECT_NEAR(s.saving->net_saving.value, 2000.0 / (10000 + 10080), 1e-9);
}

// The energy of a pause that was never read is not nothing: the saving is of the whole.
TEST(Ledger, APauseOfUnknownEnergyDrawsTheMean) {
  const auto with_pause = [](bool read) {
    Ledger ledger;
    iterate(ledger, 0, 1, 51);
    iterate(ledger, 150, 1, 51);
    ledger.add_energy(0, at(0), at(50), Joules(4000), Joules(0));
    if (read) ledger.add_energy(0, at(50), at(150), Joules(8000), Joules(0));
    ledger.add_energy(0, at(150), at(200), Joules(4000), Joules(0));
    ledger.add_observation(window({}, 5, 1.0, 100));
    return closed(ledger);
  };
  const auto read = with_pause(true), unread = with_pause(false);
  ASSERT_TRUE(read.saving && unread.saving);
  EXPECT_NEAR(unread.saving->net_saving.value, 0.2 * 10 / 18, 1e-9);
  EXPECT_NEAR(unread.saving->net_saving.value, read.saving->net_saving.value, 1e-9);
  // It may have drawn nothing, or twice as much.
  EXPECT_GT(unread.saving->net_saving.error, read.saving->net_saving.error + 0.01);
  EXPECT_NEAR(unread.saving->net_slowdown.error, read.saving->net_slowdown.error, 1e-12);
}

// Other work that is noticed late is told where it began, to cut energy there.
TEST(Ledger, TellsWhereOtherWorkBegan) {
  Ledger ledger;
  iterate(ledger, 0, 1, 51);
  ledger.add_observation(window({}, 5, 1.0, 100));
  iterate(ledger, 52, 2, 10);
  const auto left = ledger.new_phase(at(52));
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].first_end, at(52));
  iterate(ledger, 71, 1, 10);
  const auto returned = ledger.resume_phase(0, at(71));
  ASSERT_EQ(returned.size(), 1U);
  EXPECT_EQ(returned[0].first_end, at(71));
  EXPECT_EQ(ledger.iterations(), 71U);
}

TEST(Ledger, NothingIsClaimedWhenMuchOfTheWorkHasNoBaseline) {
  Ledger ledger;
  iterate(ledger, 0, 1, 51);
  ledger.add_energy(0, at(0), at(200), Joules(16000), Joules(0));
  ledger.add_observation(window({}, 5, 1.0, 100));
  ledger.new_phase();
  iterate(ledger, 60, 1, 101);
  const auto s = closed(ledger);
  EXPECT_FALSE(s.saving);
  EXPECT_NE(s.no_saving_reason.find("50 of 152"), std::string::npos) << s.no_saving_reason;
}

TEST(Ledger, APhaseWithoutABaselineIsLeftOut) {
  Ledger ledger;
  iterate(ledger, 0, 1, 51);
  ledger.add_energy(0, at(0), at(50), Joules(4000), Joules(0));
  ledger.add_observation(window({}, 5, 1.0, 100));
  ledger.new_phase();
  iterate(ledger, 60, 1, 5);
  ledger.add_energy(0, at(60), at(64), Joules(1e6), Joules(0));
  const auto s = closed(ledger);
  ASSERT_TRUE(s.saving);
  EXPECT_NEAR(s.saving->net_saving.value, 0.2, 1e-9);
}

TEST(Ledger, HeldFiguresComeFromTheWindowsAtTheHeldClock) {
  Ledger ledger;
  iterate(ledger, 0, 1, 101);
  ledger.add_energy(0, at(0), at(100), Joules(9000), Joules(0));
  ledger.add_observation(window({}, 5, 1.0, 100));
  ledger.add_observation(window(1000, 15, 1.2, 70));
  ledger.add_observation(window(1200, 25, 1.04, 80));
  const auto decide = [&](policy::Purpose purpose, std::optional<double> mhz, double at_s) {
    policy::Decision d{.purpose = purpose, .setting = {}, .goal = {}, .why = "so"};
    if (mhz) d.setting.sm = megahertz(*mhz);
    ledger.add_decision(d, at_s);
  };
  decide(policy::Purpose::kBaseline, {}, 2);
  decide(policy::Purpose::kProbe, 1000, 12);
  decide(policy::Purpose::kHold, 1200, 22);
  decide(policy::Purpose::kBaseline, {}, 60);
  decide(policy::Purpose::kHold, 1200, 65);
  const auto s = closed(ledger);
  EXPECT_EQ(s.held_sm_mhz, 1200);
  ASSERT_TRUE(s.saving->held_saving);
  EXPECT_NEAR(s.saving->held_saving->value, 0.2, 1e-6);
  EXPECT_NEAR(s.saving->held_slowdown->value, 0.04, 1e-6);
  EXPECT_EQ(s.time_to_hold_s, 22);
  EXPECT_NEAR(s.exploring_s, 20 + 5, 1e-9);
  EXPECT_EQ(s.decisions.size(), 5U);
  EXPECT_EQ(s.decisions[1].purpose, "search");
}

TEST(Ledger, RateIsThatOfTheLastTenSeconds) {
  Ledger ledger;
  EXPECT_FALSE(ledger.rate(at(0)));
  iterate(ledger, 0, 1, 20);
  iterate(ledger, 20, 0.5, 30);
  EXPECT_NEAR(ledger.rate(at(34.5)).value(), 2, 1e-9);
  EXPECT_FALSE(ledger.rate(at(60))) << "long ago";
}

TEST(Ledger, NotesAreToldOnceAndBounded) {
  Ledger ledger;
  for (int i = 0; i < 500; ++i) {
    ledger.add_note("same");
    ledger.add_note("note " + std::to_string(i));
  }
  const auto s = closed(ledger);
  EXPECT_EQ(s.notes.size(), 50U);
  EXPECT_EQ(std::ranges::count(s.notes, "same"), 1);
}

}  // namespace
}  // namespace gpoeo::control
