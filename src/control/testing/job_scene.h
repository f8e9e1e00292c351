// SPDX-License-Identifier: Apache-2.0
// A whole job on virtual time: a simulated card that may be made to fail, and the control loop.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/controller.h"
#include "control/testing/twin_progress.h"
#include "gpu/testing/faulty_device.h"
#include "gpu/testing/recording_device.h"
#include "twin/testing/fixtures.h"
#include "twin/twin_device.h"

namespace gpoeo::control::testing {

class Scene {
 public:
  explicit Scene(const twin::JobSpec& spec, std::uint64_t seed = 1,
                 const std::string& card = "a100")
      : bench(twin::testing::device(card), seed) {
    std::string name = ::testing::TempDir() + "/gpoeo_controller_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    state_dir_ = name;
    job = bench.attach(spec, {.seed = seed});
    progress = std::make_unique<TwinProgress>(bench.twin, job);
    journal_ = std::make_unique<Journal>(twin::testing::expect_ok(Journal::open(state_dir_)));
  }
  ~Scene() {
    controller.reset();
    std::filesystem::remove_all(state_dir_);
  }
  std::unique_ptr<gpu::Device> open() {
    return twin::testing::expect_ok(twin::open_device(bench.twin, 0, gpu::Access::kControl));
  }
  void start(const char* policy_name = "gpoeo", bool measure_only = false) {
    policy = twin::testing::expect_ok(policy::make_policy(policy_name));
    device = std::make_unique<gpu::testing::FaultyDevice>(
        std::make_unique<gpu::testing::RecordingDevice>(open(), log), faults);
    ControllerInput input{.clock = &bench.clock,
                          .gpus = {},
                          .progress = progress.get(),
                          .policy = policy.get(),
                          .max_slowdown = 0.05,
                          .measure_only_reason = measure_only ? "--dry-run" : ""};
    input.counters.by_cupti = std::move(sources);
    input.predict = predict;
    input.traces_after = traces_after;
    input.gpus.push_back({.device = device.get(), .guard = {}, .trace = {}});
    if (!measure_only) {
      input.gpus[0].guard.emplace(twin::testing::expect_ok(Guard::acquire(*device, *journal_, {})));
    }
    controller = std::make_unique<Controller>(std::move(input));
    controller->on_event([this](const std::string& line) { events.push_back(line); });
  }
  void pass(double seconds) {
    const Instant until = bench.clock.now() + to_duration(Seconds(seconds));
    while (bench.clock.now() < until) {
      const Instant next = std::min(controller->step(), until);
      bench.clock.advance(std::max(next - bench.clock.now(), Duration(1'000'000)));
      if (states.empty() || states.back() != controller->state()) {
        states.push_back(controller->state());
      }
    }
  }
  bool reach(State state, double within_s) {
    for (double t = 0; t < within_s && controller->state() != state; t += 1) pass(1);
    return controller->state() == state;
  }
  // What the card itself says.
  std::optional<gpu::ClockRange> lock() { return open()->controls()->sm_clock_lock().value(); }
  bool journal_left() const { return !journal_->list().empty(); }
  std::string all_events() const { return fmt::format("{}", fmt::join(events, "\n")); }

  twin::testing::Bench bench;
  twin::JobHandle job;
  std::unique_ptr<TwinProgress> progress;
  gpu::testing::CallLog log;
  gpu::testing::FaultPlan faults;
  std::unique_ptr<gpu::Device> device;
  std::unique_ptr<policy::Policy> policy;
  std::unique_ptr<Controller> controller;
  std::vector<std::string> events;
  std::vector<State> states;
  // Set before start().
  std::optional<Duration> traces_after;
  std::vector<NamedSource> sources;
  Predict predict;

 private:
  std::filesystem::path state_dir_;
  std::unique_ptr<Journal> journal_;
};

inline twin::JobSpec measured(const char* name) {
  return twin::testing::expect_ok(twin::find_job("a100", name));
}

}  // namespace gpoeo::control::testing
