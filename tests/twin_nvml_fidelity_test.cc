// SPDX-License-Identifier: Apache-2.0
// Fidelity: a client that locks each clock through NVML finds the relative time and energy of the
// smoothed measured table. Chance is off (no jitter, drift or sensor noise): what is left is the
// model's own error.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "response/response_curve.h"
#include "response/response_table.h"
#include "tests/twin_nvml_scene.h"
#include "twin/device_spec.h"
#include "twin/job_catalog.h"
#include "twin/judge.h"

namespace gpoeo::twin {
namespace {

// Short iterations, so that a part of one at the window's ends does not matter.
constexpr double kIterationS = 0.05;
constexpr Seconds kWindow(30);
constexpr double kAllowed = 0.01;

struct Worst {
  double error = 0;
  std::string where = "nowhere";
  void note(double relative_error, const std::string& at) {
    if (std::abs(relative_error) <= std::abs(error)) return;
    error = relative_error;
    where = at;
  }
};

struct Cost {
  double iteration_s, iteration_j;
};

DeviceModel without_noise(DeviceModel device) {
  device.power_noise_cv = 0;
  device.power_drift_sigma = 0;
  return device;
}

class Sweep {
 public:
  Sweep(const DeviceModel& model, const Work& work) : scene_({model}), model_(model) {
    const auto job = scene_.segment().attach_job(0, work, JobOptions{});
    EXPECT_TRUE(job) << job.error().text;
    if (job) job_ = *job;
    device_ = scene_.open();
  }

  gpu::Device& device() { return *device_; }

  // At the clocks in force, once the card's temperature has settled.
  Cost measure() {
    scene_.step(Seconds(6 * model_.thermal_tau_s + 2));
    const auto before = iterations();
    const double energy_before = energy_j();
    scene_.step(kWindow);
    const auto after = iterations();
    const double seconds = to_seconds(after.second - before.second).value() /
                           static_cast<double>(after.first - before.first);
    const double watts = (energy_j() - energy_before) / kWindow.value();
    return {seconds,
            seconds * (device_->capabilities()[gpu::Reading::kEnergyCounter] == gpu::Support::kYes
                           ? watts
                           : sampled_watts())};
  }

 private:
  // How many the job has done, and when it ended the last.
  std::pair<std::int64_t, Instant> iterations() {
    std::pair<std::int64_t, Instant> result;
    const Status visited = scene_.segment().visit(0, [&](Card& card) -> Status {
      GPOEO_TRY(const JobProgress progress, job_progress(card, job_));
      GPOEO_TRY(const auto ends, iteration_ends(card, job_, progress.iterations - 1));
      result = {progress.iterations, ends.at(0).time};
      return {};
    });
    EXPECT_TRUE(visited) << visited.error().text;
    return result;
  }

  double energy_j() {
    const auto energy = device_->energy_counter();
    return energy ? energy->value() : 0;
  }

  // For cards without the counter: the mean of the driver's power samples.
  double sampled_watts() {
    const auto samples =
        device_->power_samples_since(scene_.segment().now() - to_duration(kWindow));
    EXPECT_TRUE(samples && samples->size() > 10);
    double sum = 0;
    for (const auto& sample : *samples) sum += sample.power.value();
    return sum / static_cast<double>(samples->size());
  }

  NvmlScene scene_;
  const DeviceModel& model_;
  std::unique_ptr<gpu::Device> device_;
  JobHandle job_;
};

void sweep_workload(const DeviceModel& model, const std::string& name,
                    const response::WorkloadCurves& curves, Worst& time, Worst& energy,
                    int& points) {
  JobSpec job =
      measured_job(name, std::make_shared<const response::WorkloadCurves>(curves), kIterationS);
  make_steady(job);
  const auto work = compile(job, model);
  ASSERT_TRUE(work) << work.error().text;
  Sweep sweep(model, **work);
  gpu::Controls& controls = *sweep.device().controls();
  const Cost standard = sweep.measure();

  const auto& clocks = sweep.device().capabilities().clocks;
  for (const auto& entry : clocks) {
    if (clocks.size() > 1) {
      const Status locked = controls.lock_memory_clocks({entry.memory, entry.memory});
      ASSERT_TRUE(locked) << locked.error().text;
    }
    for (const Hertz sm : entry.sm) {
      response::Setting setting;
      setting.sm_mhz = to_mhz(sm);
      if (curves.default_setting().mem_mhz) setting.mem_mhz = to_mhz(entry.memory);
      const response::Response truth = curves.at(setting);
      if (truth.clamped || truth.other_memory || !truth.relative_energy) continue;
      const Status locked = controls.lock_sm_clocks({entry.sm.front(), sm});
      ASSERT_TRUE(locked) << locked.error().text;
      const Cost cost = sweep.measure();
      const std::string at = name + " at " + std::to_string(static_cast<int>(to_mhz(sm))) + "/" +
                             std::to_string(static_cast<int>(to_mhz(entry.memory))) + " MHz";
      time.note(cost.iteration_s / standard.iteration_s / truth.relative_time - 1, at);
      energy.note(cost.iteration_j / standard.iteration_j / *truth.relative_energy - 1, at);
      ++points;
    }
  }
}

class Fidelity : public ::testing::TestWithParam<const char*> {};

TEST_P(Fidelity, SweepThroughNvmlReproducesTheSmoothedTable) {
  const auto found = find_device(GetParam());
  ASSERT_TRUE(found) << found.error().text;
  const DeviceModel model = without_noise(*found);
  const auto jobs = jobs_for(GetParam());
  ASSERT_TRUE(jobs) << jobs.error().text;
  Worst time, energy;
  int points = 0, workloads = 0;
  for (const JobEntry& entry : *jobs) {
    if (!entry.measured) continue;
    const auto table = response::read_response_table(entry.source);
    ASSERT_TRUE(table) << table.error().text;
    const auto workload = table->find(entry.name);
    ASSERT_TRUE(workload);
    const auto curves = response::WorkloadCurves::fit(**workload);
    ASSERT_TRUE(curves) << curves.error().text;
    sweep_workload(model, entry.name, *curves, time, energy, points);
    ++workloads;
  }
  std::printf(
      "%s: %d workloads, %d clock settings; worst time %+.3f %% (%s), energy %+.3f %% (%s)\n",
      GetParam(), workloads, points, time.error * 100, time.where.c_str(), energy.error * 100,
      energy.where.c_str());
  EXPECT_GT(workloads, 0);
  EXPECT_GT(points, 30 * workloads);
  EXPECT_LT(std::abs(time.error), kAllowed) << time.where;
  EXPECT_LT(std::abs(energy.error), kAllowed) << energy.where;
}

INSTANTIATE_TEST_SUITE_P(Devices, Fidelity, ::testing::Values("a100", "titanx"),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
}  // namespace gpoeo::twin
