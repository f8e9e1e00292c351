// SPDX-License-Identifier: Apache-2.0
// Counters in the control loop: read once for each kind of work, at default clocks, and whatever
// fails there costs the job nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/testing/job_scene.h"

namespace gpoeo::control {
namespace {

using gpu::testing::Call;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Scene;
using ::testing::SizeIs;

twin::JobSpec compute(double sm_activity, double iteration_s = 0.2) {
  return twin::testing::compute_job(iteration_s, sm_activity);
}

std::size_t counter_calls(const Scene& scene) {
  const auto lines = scene.log.lines();
  return static_cast<std::size_t>(std::ranges::count_if(
      lines, [](const std::string& line) { return line.starts_with("counters"); }));
}

// A source of the test's own.
struct Script {
  int begun = 0;
  int cancelled = 0;
  Status begin_answer{};
  std::optional<Result<CounterReading>> answer{};
  Seconds after{};  // that the answer comes
};
class ScriptedSource final : public CounterSource {
 public:
  explicit ScriptedSource(Script& script) : script_(script) {}
  bool free_of_cost() const override { return false; }
  Status begin(Instant now, Seconds) override {
    ++script_.begun;
    began_ = now;
    return script_.begin_answer;
  }
  std::optional<Result<CounterReading>> poll(Instant now, std::span<const Instant>, bool) override {
    return to_seconds(now - began_) >= script_.after ? script_.answer : std::nullopt;
  }
  void cancel() override { ++script_.cancelled; }

 private:
  Script& script_;
  Instant began_{};
};

CounterReading reading(double sm_active) {
  CounterReading r;
  r.activity.sm_active = sm_active;
  r.origin = CounterOrigin::kPmSampling;
  return r;
}

TEST(ControllerProfile, IsTheJobsTrueActivity) {
  for (const char* name : {"resnet50", "gpt2_accum"}) {
    Scene scene(twin::testing::expect_ok(twin::find_job("h200", name)), 1, "h200");
    scene.start();
    // What the card itself counted, over all of the time at default clocks.
    const auto begin = twin::testing::expect_ok(scene.bench.front().counters_in_process());
    ASSERT_TRUE(scene.reach(State::kSearch, 60)) << scene.all_events();
    const auto end = twin::testing::expect_ok(scene.bench.front().counters_in_process());
    const auto truth = [&](twin::Activity activity) {
      const auto i = static_cast<std::size_t>(activity);
      return (end.integral[i] - begin.integral[i]) / to_seconds(end.time - begin.time).value();
    };
    const auto s = scene.controller->finish();
    ASSERT_THAT(s.profiles, SizeIs(1));
    const auto& profile = s.profiles[0];
    EXPECT_EQ(profile.source, "GPM");
    EXPECT_GT(truth(twin::Activity::kSmActive), 0.3);
    EXPECT_NEAR(*profile.activity.sm_active, truth(twin::Activity::kSmActive), 0.02) << name;
    EXPECT_NEAR(*profile.activity.tensor_active, truth(twin::Activity::kTensorActive), 0.02);
    EXPECT_NEAR(*profile.activity.dram_active, truth(twin::Activity::kDramActive), 0.02);
    EXPECT_TRUE(profile.time_s && profile.power_w && profile.power_limit_w && profile.sm_mhz);
    EXPECT_TRUE(profile.gpu_utilization);
  }
}

TEST(ControllerProfile, CountersAreReadAtTheFirstBaselineOnlyAndTakeNoTime) {
  Scene with(compute(0.5), 1, "h200"), without(compute(0.5), 1, "h200");
  const Instant began = with.bench.clock.now();
  with.start();
  ASSERT_TRUE(with.reach(State::kSearch, 60));
  const Duration needed = with.bench.clock.now() - began;
  const auto calls = counter_calls(with);
  EXPECT_GT(calls, 5U);
  ASSERT_TRUE(with.reach(State::kHold, 200));
  with.pass(150);  // a fresh baseline lies in it
  EXPECT_EQ(counter_calls(with), calls);

  const Instant began_without = without.bench.clock.now();
  without.faults.fail(Call::kCounters, {ErrorKind::kNotSupported, "none"});
  without.start();
  ASSERT_TRUE(without.reach(State::kSearch, 60));
  EXPECT_EQ(without.bench.clock.now() - began_without, needed);
}

TEST(ControllerProfile, GoesToTheModelOnceAndItsAnswerToThePolicy) {
  int asked = 0;
  Scene scene(compute(0.5), 1, "h200");
  scene.predict = [&](const Profile& profile) {
    ++asked;
    EXPECT_TRUE(profile.activity.sm_active);
    EXPECT_GT(profile.power.value(), 100);
    return std::vector<policy::Prediction>{{.setting = {.sm = megahertz(1500)}, .time = 1.01}};
  };
  scene.start();
  ASSERT_TRUE(scene.reach(State::kHold, 200));
  scene.pass(100);
  EXPECT_EQ(asked, 1);
  EXPECT_THAT(scene.events, Contains(HasSubstr("predict: the model expects something of 1")));
}

TEST(ControllerProfile, CountersThatFailCostTheJobNothing) {
  for (const ErrorKind kind : {ErrorKind::kIo, ErrorKind::kNoPermission, ErrorKind::kNotSupported,
                               ErrorKind::kInvalid, ErrorKind::kBusy}) {
    Scene scene(compute(0.5), 1, "h200");
    scene.faults.fail(Call::kCounters, {kind, "injected"});
    scene.start();
    EXPECT_TRUE(scene.reach(State::kHold, 200)) << static_cast<int>(kind);
    const auto s = scene.controller->finish();
    ASSERT_THAT(s.profiles, SizeIs(1));
    EXPECT_EQ(s.profiles[0].source, "none");
    EXPECT_THAT(s.profiles[0].why, HasSubstr("GPM: ")) << "told why";
    EXPECT_EQ(s.profiles[0].activity, Activity{});
    EXPECT_TRUE(s.profiles[0].time_s && s.profiles[0].gpu_utilization);
    EXPECT_TRUE(s.saving);
  }
}

TEST(ControllerProfile, TheNextSourceIsAskedWhenTheBestFails) {
  Script script;
  script.answer = reading(0.37);
  Scene scene(compute(0.5), 1, "h200");
  scene.faults.fail(Call::kCounters, {ErrorKind::kIo, "injected"});
  scene.sources.push_back({"scripted", std::make_unique<ScriptedSource>(script)});
  scene.start();
  ASSERT_TRUE(scene.reach(State::kSearch, 60));
  const auto s = scene.controller->finish();
  ASSERT_THAT(s.profiles, SizeIs(1));
  EXPECT_EQ(s.profiles[0].source, "CUPTI PM sampling");
  EXPECT_EQ(s.profiles[0].activity.sm_active, 0.37);
  EXPECT_THAT(s.profiles[0].why, HasSubstr("GPM: "));
}

// An A100 has no GPM: the report says so, and what was asked instead.
TEST(ControllerProfile, WithoutGpmTheReasonIsTold) {
  Scene scene(compute(0.5));
  scene.start();
  ASSERT_TRUE(scene.reach(State::kSearch, 60));
  EXPECT_EQ(counter_calls(scene), 0U);
  const auto s = scene.controller->finish();
  ASSERT_THAT(s.profiles, SizeIs(1));
  EXPECT_EQ(s.profiles[0].source, "none");
  EXPECT_THAT(s.profiles[0].why, HasSubstr("Hopper"));
}

TEST(ControllerProfile, ASlowSourceIsAwaitedInStateProfileAndASilentOneGivenUp) {
  for (const bool silent : {false, true}) {
    Script script;
    if (!silent) script.answer = reading(0.4);
    script.after = Seconds(25);  // longer than any baseline
    Scene scene(compute(0.5));
    scene.sources.push_back({"scripted", std::make_unique<ScriptedSource>(script)});
    scene.start();
    ASSERT_TRUE(scene.reach(State::kProfile, 60));
    EXPECT_FALSE(scene.lock());
    ASSERT_TRUE(scene.reach(State::kSearch, 100)) << silent;
    EXPECT_GE(script.cancelled, 1);
    const auto s = scene.controller->finish();
    EXPECT_EQ(s.profiles.at(0).source, silent ? "none" : "CUPTI PM sampling");
  }
}

TEST(ControllerProfile, ReleaseAndIdlenessEndAWindow) {
  Script script;  // never answers
  Scene scene(compute(0.5));
  scene.sources.push_back({"scripted", std::make_unique<ScriptedSource>(script)});
  scene.start();
  ASSERT_TRUE(scene.reach(State::kProfile, 60));
  scene.progress->hidden = true;
  ASSERT_TRUE(scene.reach(State::kIdle, 60));
  EXPECT_EQ(script.cancelled, 1);
  scene.progress->hidden = false;
  ASSERT_TRUE(scene.reach(State::kProfile, 60)) << scene.all_events();
  EXPECT_EQ(script.begun, 2);
  scene.controller->release("signal");
  EXPECT_EQ(script.cancelled, 2);
  scene.pass(30);
  EXPECT_EQ(script.begun, 2);
  EXPECT_THAT(scene.controller->finish().profiles, IsEmpty());
}

// Work A, then B, then A again: a source that costs something is asked for A and for B.
TEST(ControllerProfile, WorkThatComesBackIsRemembered) {
  twin::JobSpec spec = compute(0.5, 0.1);
  spec.stages.push_back(spec.stages[0]);
  spec.stages.push_back(spec.stages[0]);
  spec.stages[0].iterations = 1200;
  spec.stages[1].iterations = 700;
  spec.stages[1].length = 2.5;
  Script script;
  script.answer = reading(0.5);
  Scene scene(spec);
  scene.sources.push_back({"scripted", std::make_unique<ScriptedSource>(script)});
  scene.start();
  scene.pass(120 + 175 + 120);
  EXPECT_EQ(script.begun, 2) << scene.all_events();
  const auto s = scene.controller->finish();
  EXPECT_THAT(s.profiles, SizeIs(2));
  EXPECT_THAT(scene.all_events(), HasSubstr("this work is known"));
}

}  // namespace
}  // namespace gpoeo::control
