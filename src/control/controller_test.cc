// SPDX-License-Identifier: Apache-2.0
// Whole jobs on virtual time: a simulated A100, the control loop, and the simulator's own truth.
#include "control/controller.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "control/testing/job_scene.h"

namespace gpoeo::control {
namespace {

using gpu::testing::Call;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::measured;
using testing::Scene;
using twin::testing::expect_ok;

TEST(Controller, FindsHoldsAndTellsTheTruth) {
  for (const char* name : {"LSTM", "stream", "dgemm"}) {
    Scene scene(measured(name));
    scene.start();
    scene.pass(120);
    // Looks go on, ever rarer: at any one moment there may be one.
    int held_s = 0;
    for (int second = 120; second < 400; ++second) {
      scene.pass(1);
      held_s += scene.controller->state() == State::kHold;
    }
    EXPECT_GE(held_s, 280 * 3 / 5) << name;
    EXPECT_TRUE(scene.lock()) << name;
    EXPECT_THAT(scene.states, ::testing::IsSupersetOf({State::kWarmup, State::kBaseline,
                                                       State::kSearch, State::kHold}));
    EXPECT_EQ(scene.states.front(), State::kWarmup);
    const auto s = scene.controller->finish();
    EXPECT_FALSE(scene.lock()) << name;
    EXPECT_FALSE(scene.journal_left()) << name;
    const auto truth = scene.bench.truth().jobs.at(0);
    const double saving = 1 - truth.iterations_energy_j / truth.reference_j;
    ASSERT_TRUE(s.saving) << name << s.no_saving_reason;
    fmt::print(
        "{}: net saving {:.2f} % ± {:.2f} (truth {:.2f} %), net slow-down {:.2f} % ± {:.2f}, "
        "held {:.0f} MHz: {:.2f} % and {:.2f} %\n",
        name, 100 * s.saving->net_saving.value, 100 * s.saving->net_saving.error, 100 * saving,
        100 * s.saving->net_slowdown.value, 100 * s.saving->net_slowdown.error,
        s.held_sm_mhz.value_or(0), 100 * s.saving->held_saving->value,
        100 * s.saving->held_slowdown->value);
    EXPECT_NEAR(s.saving->net_saving.value, saving, 0.015) << name;
    EXPECT_LE(s.saving->held_slowdown->value, 0.056) << name;
    EXPECT_GE(s.saving->net_saving.value, 0.08) << name;
    EXPECT_NEAR(static_cast<double>(s.iterations), static_cast<double>(truth.iterations), 1)
        << name;
    EXPECT_TRUE(s.simulated);
    ASSERT_EQ(s.gpus.size(), 1U);
    if (std::getenv("GPOEO_TEST_VERBOSE") != nullptr) {
      for (const auto& note : s.notes) fmt::print("  note {}\n", note);
      fmt::print("  {} {} mean {}\n", s.gpus[0].energy_source, s.gpus[0].energy_source_reason,
                 *s.gpus[0].mean_power_w);
    }
    EXPECT_NEAR(*s.gpus[0].energy_j / scene.bench.truth().energy.value(), 1, 0.02) << name;
    EXPECT_EQ(s.gpus[0].clocks_found, "not locked");
    EXPECT_EQ(s.gpus[0].clocks_restored, "not locked");
    EXPECT_FALSE(s.gpus[0].restore_failed);
    EXPECT_GT(s.clock_writes, 1U);
    EXPECT_TRUE(s.time_to_hold_s && *s.time_to_hold_s < 120) << name;
    EXPECT_NEAR(s.duration_s, 400, 1);
    EXPECT_EQ(s.policy, "gpoeo");
  }
}

// The 90 % interval of the report holds the simulator's truth about as often as it says.
TEST(Controller, IntervalsHoldTheTruth) {
  int inside = 0, all = 0;
  double off = 0;
  for (const char* name : {"LSTM", "stream", "dgemm"}) {
    for (std::uint64_t seed = 1; seed <= 8; ++seed, ++all) {
      Scene scene(measured(name), seed);
      scene.start();
      scene.pass(300);
      const auto s = scene.controller->finish();
      const auto truth = scene.bench.truth().jobs.at(0);
      const double error =
          s.saving->net_saving.value - (1 - truth.iterations_energy_j / truth.reference_j);
      inside += std::abs(error) <= 1.645 * s.saving->net_saving.error;
      off += error;
    }
  }
  fmt::print("net saving: {} of {} intervals hold the truth, mean error {:+.2f} points\n", inside,
             all, 100 * off / all);
  EXPECT_GE(inside, all * 8 / 10);
  EXPECT_NEAR(off / all, 0, 0.01);
}

TEST(Controller, WorksBelowALockFoundBefore) {
  Scene scene(measured("dgemm"));
  const gpu::ClockRange found{megahertz(210), megahertz(1200)};
  ASSERT_TRUE(scene.open()->controls()->lock_sm_clocks(found));
  scene.start();
  scene.pass(300);
  const auto s = scene.controller->finish();
  EXPECT_EQ(scene.lock(), found);
  EXPECT_LT(s.held_sm_mhz.value_or(0), 1200);
  EXPECT_THAT(s.gpus[0].clocks_restored, HasSubstr("1200"));
}

TEST(Controller, MeasureOnlyNeverWrites) {
  Scene scene(measured("LSTM"));
  scene.start("gpoeo", true);
  scene.pass(200);
  const auto s = scene.controller->finish();
  EXPECT_THAT(scene.log.writes(), IsEmpty());
  EXPECT_EQ(s.clock_writes, 0U);
  EXPECT_EQ(s.measure_only_reason, "--dry-run");
  EXPECT_FALSE(s.held_sm_mhz);
  EXPECT_FALSE(s.time_to_hold_s);
  EXPECT_TRUE(s.gpus[0].clocks_restored.empty());
  EXPECT_TRUE(s.baseline) << "measured all the same";
  EXPECT_FALSE(s.saving) << "nothing was set, so nothing was saved";
  EXPECT_THAT(scene.all_events(), HasSubstr("would set"));
}

TEST(Controller, TheDefaultPolicyNeverWritesEither) {
  Scene scene(measured("LSTM"));
  scene.start("default");
  scene.pass(100);
  const auto s = scene.controller->finish();
  EXPECT_THAT(scene.log.writes(), IsEmpty());
  EXPECT_FALSE(s.held_sm_mhz);
}

TEST(Controller, StaticHoldsWhatWasAskedFor) {
  Scene scene(measured("dgemm"));
  scene.start("static:1005");
  scene.pass(120);
  EXPECT_EQ(scene.lock()->max, megahertz(1005));
  const auto s = scene.controller->finish();
  EXPECT_EQ(s.held_sm_mhz, 1005);
  EXPECT_GT(s.saving->held_slowdown->value, 0.2) << "slow as it is, and told as it is";
}

TEST(Controller, TooShortAJobClaimsNothing) {
  for (const double seconds : {0.0, 0.1, 1.0, 4.0}) {
    Scene scene(measured("LSTM"));
    scene.start();
    scene.pass(seconds);
    const auto s = scene.controller->finish();
    EXPECT_FALSE(s.saving) << seconds;
    EXPECT_FALSE(s.no_saving_reason.empty()) << seconds;
    EXPECT_THAT(scene.log.writes(), IsEmpty()) << seconds;
  }
}

TEST(Controller, ReleaseRestoresAtOnceAndNothingIsSetAfterwards) {
  // In each state of a job.
  for (const State state : {State::kWarmup, State::kBaseline, State::kSearch, State::kHold}) {
    Scene scene(measured("LSTM"));
    scene.start();
    ASSERT_TRUE(state == State::kWarmup || scene.reach(state, 200)) << to_string(state);
    scene.controller->release("signal");
    EXPECT_FALSE(scene.lock()) << to_string(state);
    EXPECT_EQ(scene.controller->state(), State::kStop);
    const auto writes = scene.log.writes().size();
    scene.pass(60);
    scene.controller->release("again");
    const auto s = scene.controller->finish();
    EXPECT_EQ(scene.log.writes().size(), writes) << to_string(state);
    EXPECT_EQ(scene.controller->state(), State::kStop) << to_string(state);
    EXPECT_FALSE(scene.journal_left());
  }
}

TEST(Controller, WhicheverWriteFailsTheClocksComeBack) {
  for (const ErrorKind kind : {ErrorKind::kIo, ErrorKind::kNoPermission}) {
    for (int n = 1; n <= 8; ++n) {
      Scene scene(measured("LSTM"));
      scene.start();
      scene.faults.fail_nth_write(n, {kind, "injected"});
      scene.pass(160);
      const auto s = scene.controller->finish();
      EXPECT_FALSE(scene.lock()) << "write " << n;
      EXPECT_FALSE(scene.journal_left()) << "write " << n;
      EXPECT_FALSE(s.gpus[0].restore_failed) << "write " << n << ": it worked when tried again";
      const auto writes = scene.log.writes().size();
      if (writes >= static_cast<std::size_t>(n)) {
        EXPECT_THAT(fmt::format("{}", fmt::join(s.notes, "\n")), HasSubstr("injected")) << n;
      }
    }
  }
}

// The lock cannot be taken off: what is measured then is no baseline, and the report says so.
TEST(Controller, ARestoreThatFailsIsNoBaselineAndLoud) {
  Scene scene(measured("LSTM"));
  scene.start();
  ASSERT_TRUE(scene.reach(State::kHold, 200));
  scene.faults.fail(Call::kResetSmClocks, {ErrorKind::kIo, "stuck"});
  scene.pass(300);  // a fresh baseline comes due
  EXPECT_EQ(scene.controller->state(), State::kStop);
  const auto s = scene.controller->finish();
  EXPECT_TRUE(s.gpus[0].restore_failed);
  EXPECT_TRUE(scene.journal_left());
  ASSERT_TRUE(s.saving);
  EXPECT_GT(s.saving->net_saving.value, 0.1) << "the held clock did not become the baseline";
  scene.faults.heal();
}

TEST(Controller, ALostGpuEndsItAndItsClocksAreGivenBackWhenItReturns) {
  Scene scene(measured("LSTM"));
  scene.start();
  ASSERT_TRUE(scene.reach(State::kHold, 200));
  scene.faults.lose_from();
  scene.pass(30);
  EXPECT_EQ(scene.controller->state(), State::kStop);
  scene.faults.heal();
  scene.pass(10);
  const auto s = scene.controller->finish();
  EXPECT_FALSE(scene.lock());
  EXPECT_FALSE(s.gpus[0].restore_failed);
  EXPECT_FALSE(scene.journal_left());
}

TEST(Controller, AGpuLostForGoodIsNotRestoredAndTheReportSaysSo) {
  Scene scene(measured("LSTM"));
  scene.start();
  ASSERT_TRUE(scene.reach(State::kHold, 200));
  scene.faults.lose_from();
  scene.pass(30);
  EXPECT_EQ(std::ranges::count_if(scene.events,
                                  [](const auto& line) { return line.contains("a GPU was lost"); }),
            1)
      << "told once, not at each step";
  const auto s = scene.controller->finish();
  EXPECT_TRUE(s.gpus[0].restore_failed);
  EXPECT_TRUE(scene.journal_left()) << "for gpoeo reset";
  scene.faults.heal();
}

TEST(Controller, IdleAndBack) {
  Scene scene(measured("LSTM"));
  scene.start();
  ASSERT_TRUE(scene.reach(State::kHold, 200));
  const auto held = scene.lock();
  scene.progress->hidden = true;
  scene.pass(40);
  EXPECT_EQ(scene.controller->state(), State::kIdle);
  scene.progress->hidden = false;
  scene.pass(60);
  EXPECT_EQ(scene.controller->state(), State::kHold);
  EXPECT_TRUE(held && scene.lock());
  const auto s = scene.controller->finish();
  ASSERT_TRUE(s.saving);
  EXPECT_LT(s.saving->net_slowdown.value, 0.05) << "40 s of idleness are no slow-down";
}

// A job that is idle while nothing was measured yet must find its way as well.
TEST(Controller, IdleDuringTheFirstBaseline) {
  Scene scene(measured("LSTM"));
  scene.start();
  ASSERT_TRUE(scene.reach(State::kBaseline, 60));
  scene.progress->hidden = true;
  scene.pass(30);
  EXPECT_EQ(scene.controller->state(), State::kIdle);
  scene.progress->hidden = false;
  EXPECT_TRUE(scene.reach(State::kHold, 200));
}

TEST(Controller, OtherWorkStartsFromABaselineOfItsOwn) {
  twin::JobSpec spec = twin::testing::compute_job(0.1);
  spec.stages.push_back(spec.stages[0]);
  spec.stages[0].iterations = 1500;  // 150 s
  spec.stages[1].length = 2.5;
  Scene scene(spec);
  scene.start();
  ASSERT_TRUE(scene.reach(State::kHold, 140));
  scene.states.clear();
  scene.pass(250);
  EXPECT_THAT(scene.states, ::testing::IsSupersetOf({State::kWarmup, State::kBaseline}));
  EXPECT_THAT(scene.all_events(), HasSubstr("the work changed"));
  const auto s = scene.controller->finish();
  ASSERT_TRUE(s.baseline);
  EXPECT_NEAR(s.baseline->time_s.value, 0.25, 0.01) << "the newest work's";
  EXPECT_LT(std::abs(s.saving->net_slowdown.value), 0.08)
      << "longer iterations of other work are no slow-down";
}

// Also where no clock is held: a shifted job is no longer what was left or is only watched.
TEST(Controller, OtherWorkIsSeenAtDefaultClocksToo) {
  twin::JobSpec spec = twin::testing::compute_job(0.1);
  spec.stages.push_back(spec.stages[0]);
  spec.stages[0].iterations = 600;
  spec.stages[1].length = 2.5;
  Scene scene(spec);
  scene.start("default");
  scene.pass(200);
  EXPECT_THAT(scene.all_events(), HasSubstr("the work changed"));
  const auto s = scene.controller->finish();
  EXPECT_NEAR(s.baseline->time_s.value, 0.25, 0.01);
  EXPECT_LT(std::abs(s.saving->net_slowdown.value), 0.08);
  EXPECT_THAT(scene.log.writes(), IsEmpty());
}

TEST(Controller, AClockThatCouldNotBeSetWasNotHeld) {
  Scene scene(measured("LSTM"));
  scene.start("static:1005");
  scene.faults.fail(Call::kLockSmClocks, {ErrorKind::kNoPermission, "injected"});
  scene.pass(60);
  const auto s = scene.controller->finish();
  EXPECT_FALSE(s.held_sm_mhz);
  EXPECT_FALSE(s.time_to_hold_s);
  EXPECT_TRUE(s.gpus[0].clocks_restored.empty()) << "never touched";
}

TEST(Controller, ANewCountStartsAnew) {
  Scene scene(measured("LSTM"));
  scene.start();
  ASSERT_TRUE(scene.reach(State::kHold, 200));
  scene.progress->generation_ = 1;
  scene.pass(1);
  EXPECT_FALSE(scene.lock()) << "default clocks for the baseline that comes";
  EXPECT_TRUE(scene.reach(State::kHold, 200));
}

TEST(Controller, ANewCountWhileIdleIsNoWayAround) {
  Scene scene(measured("LSTM"));
  scene.start();
  ASSERT_TRUE(scene.reach(State::kHold, 200));
  scene.progress->hidden = true;
  scene.pass(30);
  ASSERT_EQ(scene.controller->state(), State::kIdle);
  scene.progress->generation_ = 1;
  scene.pass(5);
  scene.progress->hidden = false;
  EXPECT_TRUE(scene.reach(State::kHold, 200));
}

TEST(Controller, LiveStatusKnowsWhatIsGoingOn) {
  Scene scene(measured("LSTM"));
  scene.start();
  const auto before = scene.controller->live_status();
  EXPECT_FALSE(before.power_w);
  EXPECT_FALSE(before.iterations_per_s);
  ASSERT_TRUE(scene.reach(State::kHold, 200));
  scene.pass(5);
  const auto live = scene.controller->live_status();
  EXPECT_EQ(live.state, State::kHold);
  EXPECT_GT(live.iterations, 10U);
  ASSERT_TRUE(live.power_w && live.sm_mhz && live.iterations_per_s);
  EXPECT_NEAR(*live.sm_mhz, to_mhz(scene.lock()->max), 1);
  EXPECT_THAT(live.setting, HasSubstr("SM"));
}

// Launches are seen only after traces have taken over (a long compilation, say): counting wins.
TEST(Controller, TracesStandDownWhenIterationsAreCounted) {
  Scene scene(measured("LSTM"));
  scene.traces_after = std::chrono::seconds(20);
  scene.progress->hidden = true;
  scene.start();
  scene.pass(40);
  EXPECT_FALSE(scene.lock()) << "nothing is known yet";
  scene.progress->hidden = false;
  ASSERT_TRUE(scene.reach(State::kHold, 200)) << scene.all_events();
  EXPECT_THAT(scene.all_events(), HasSubstr("iterations are counted from here on"));
  scene.progress->hidden = true;
  EXPECT_TRUE(scene.reach(State::kIdle, 60)) << "and a job that stops is idle again";
  const auto s = scene.controller->finish();
  EXPECT_FALSE(scene.lock());
  EXPECT_THAT(fmt::format("{}", fmt::join(s.notes, "\n")), HasSubstr("power traces"));
}

// By traces alone, and then the energy is gone: what cannot be measured does not stay set.
TEST(Controller, ByTracesAClockThatCannotBeMeasuredIsGivenBack) {
  Scene scene(measured("LSTM"));
  scene.traces_after = std::chrono::seconds(5);
  scene.progress->hidden = true;
  scene.start();
  scene.pass(60);
  for (const Call call :
       {Call::kPowerSamplesSince, Call::kPowerInstant, Call::kPowerAverage, Call::kEnergyCounter}) {
    scene.faults.fail(call, {ErrorKind::kIo, "stuck"});
  }
  scene.pass(400);
  EXPECT_FALSE(scene.lock()) << scene.all_events();
}

}  // namespace
}  // namespace gpoeo::control
