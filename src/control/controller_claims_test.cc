// SPDX-License-Identifier: Apache-2.0
// What whole jobs claim against the simulator's own truth, where that is hard: work with pauses,
// and work that nobody counts. bench/claims has every job and more seeds.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/chance.h"
#include "control/testing/job_scene.h"

namespace gpoeo::control {
namespace {

using ::testing::HasSubstr;
using testing::Scene;
using twin::testing::expect_ok;

twin::JobSpec job(const char* card, const char* name) {
  return expect_ok(twin::find_job(card, name));
}

struct Tally {
  int runs = 0, held = 0;
  double off = 0;
  void add(const report::Figure& claim, double truth) {
    ++runs;
    held += std::abs(claim.value - truth) <= kNinety * claim.error;
    off += claim.value - truth;
  }
};

double true_saving(Scene& scene) {
  const auto truth = scene.bench.truth().jobs.at(0);
  return 1 - truth.iterations_energy_j / truth.reference_j;
}

// A stretch of energy that holds the end of a pause and the iterations behind it must not be shared
// out by time: this claimed 1.6 points too much.
TEST(ControllerClaims, PausesDoNotPassForSaving) {
  Tally saving;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Scene scene(job("h200", "eval_checkpoint"), seed, "h200");
    scene.start();
    scene.pass(400);
    const auto s = scene.controller->finish();
    ASSERT_TRUE(s.saving) << s.no_saving_reason;
    saving.add(s.saving->net_saving, true_saving(scene));
  }
  EXPECT_GE(saving.held, 4);
  EXPECT_LT(saving.off / saving.runs, 0.005) << "nothing that was not saved";
  EXPECT_GT(saving.off / saving.runs, -0.015);
}

// Work A, then B, then A again: neither is a pause of the other, which would halve the claim.
TEST(ControllerClaims, WorkInTurnIsClaimedInFull) {
  Tally saving;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    twin::JobSpec spec = job("h200", "resnet50");
    const auto spell = [&](double seconds, double length) {
      twin::StageSpec stage = spec.stages[0];
      stage.length = length;
      stage.iterations = static_cast<std::int64_t>(seconds / (length * spec.iteration_s));
      return stage;
    };
    spec.stages = {spell(300, 1), spell(300, 2.5), spell(300, 1)};
    Scene scene(spec, seed, "h200");
    scene.start();
    scene.pass(800);
    const auto s = scene.controller->finish();
    ASSERT_TRUE(s.saving) << s.no_saving_reason;
    saving.add(s.saving->net_saving, true_saving(scene));
    EXPECT_LT(kNinety * s.saving->net_saving.error, 0.02);
  }
  EXPECT_GE(saving.held, 4);
  EXPECT_NEAR(saving.off / saving.runs, 0, 0.01);
}

TEST(ControllerClaims, ByTracesThereAreNetFiguresToo) {
  Tally saving, time;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Scene scene(job("h200", "resnet50"), seed, "h200");
    scene.traces_after = std::chrono::seconds(5);
    scene.progress->hidden = true;
    scene.start();
    scene.pass(400);
    const auto s = scene.controller->finish();
    EXPECT_TRUE(s.by_traces);
    EXPECT_EQ(s.iterations, 0U);
    ASSERT_TRUE(s.saving) << s.no_saving_reason;
    const auto truth = scene.bench.truth().jobs.at(0);
    saving.add(s.saving->net_saving, true_saving(scene));
    time.add(s.saving->net_slowdown,
             static_cast<double>(truth.end_ns - truth.start_ns) * 1e-9 / truth.reference_s - 1);
  }
  EXPECT_GE(saving.held, 3);
  EXPECT_GE(time.held, 3);
  EXPECT_NEAR(saving.off / saving.runs, 0, 0.01);
  EXPECT_NEAR(time.off / time.runs, 0, 0.01);
}

// An A100's own samples see a quarter of the time: nothing in them compares.
TEST(ControllerClaims, ByTracesThatDoNotCompareTheReportSaysWhy) {
  Scene scene(job("a100", "LSTM"));
  scene.traces_after = std::chrono::seconds(5);
  scene.progress->hidden = true;
  scene.start();
  scene.pass(300);
  const auto s = scene.controller->finish();
  EXPECT_FALSE(s.saving);
  EXPECT_THAT(s.no_saving_reason, HasSubstr("power trace"));
  EXPECT_TRUE(s.gpus.at(0).energy_j) << "what was used is known all the same";
}

}  // namespace
}  // namespace gpoeo::control
