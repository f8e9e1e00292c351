// SPDX-License-Identifier: Apache-2.0
// What the twin's tests (and others') start from: quiet devices and jobs, a card on virtual time.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "twin/card_front.h"
#include "twin/compile.h"
#include "twin/device_spec.h"
#include "twin/job_catalog.h"
#include "twin/judge.h"
#include "twin/twin.h"

namespace gpoeo::twin::testing {

template <typename T>
T expect_ok(Result<T> result) {
  if (!result) ADD_FAILURE() << result.error().text;
  return std::move(result).value();
}

inline DeviceModel device(const std::string& name) { return expect_ok(find_device(name)); }

// No noise, so that a reading is what it measures.
inline DeviceModel quiet_device(const std::string& name) {
  DeviceModel model = device(name);
  model.power_noise_cv = 0;
  model.power_drift_sigma = 0;
  return model;
}

// Without chance, so that every iteration is the same.
inline JobSpec steady_job(const std::string& device_key, const std::string& name) {
  JobSpec job = expect_ok(find_job(device_key, name));
  make_steady(job);
  return job;
}

// One kernel phase whose time goes with 1 / SM clock.
inline JobSpec compute_job(double iteration_s = 0.1, double sm_activity = 0.5) {
  PhaseSpec phase;
  phase.name = "kernel";
  phase.response.sm_activity = sm_activity;
  VariantSpec variant;
  variant.phases = {phase};
  StageSpec stage;
  stage.variants = {variant};
  JobSpec job;
  job.name = "compute";
  job.iteration_s = iteration_s;
  job.stages = {stage};
  make_steady(job);
  return job;
}

// A card alone on its own virtual time.
class Bench {
 public:
  explicit Bench(const DeviceModel& model, std::uint64_t seed = 1) : twin(clock, "test") {
    twin.add_card(model, seed);
  }
  JobHandle attach(const JobSpec& job, JobOptions options = {}) {
    const auto work = expect_ok(compile(job, twin.device(0)));
    return expect_ok(twin.attach(0, *work, options));
  }
  void pass(double seconds) { clock.advance(to_duration(Seconds(seconds))); }
  CardTruth truth() { return expect_ok(twin::truth(twin, 0)); }
  void lock_sm(double mhz) {
    const double lowest = twin.device(0).sm_mhz[0];
    const Status locked = front().lock_sm_clocks({megahertz(lowest), megahertz(mhz)});
    EXPECT_TRUE(locked.has_value()) << locked.error().text;
  }
  CardFront front() { return {twin, 0}; }

  VirtualClock clock;
  Twin twin;
};

}  // namespace gpoeo::twin::testing
