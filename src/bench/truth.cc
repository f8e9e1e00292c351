// SPDX-License-Identifier: Apache-2.0
#include "bench/truth.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "policy/objective.h"
#include "twin/compile.h"
#include "twin/judge.h"
#include "twin/twin.h"
#include "twin/twin_device.h"

namespace gpoeo::bench {
namespace {

std::size_t slot(int i) { return static_cast<std::size_t>(i); }

struct Cost {
  double time_s = 0, energy_j = 0;
};

// One mean iteration of the first stage at a clock pair, nothing binding.
Cost uncapped(const twin::Work& work, int pair) {
  Cost cost;
  const twin::Stage& stage = work.stages[0];
  for (int v = stage.first_variant; v < stage.first_variant + stage.variant_count; ++v) {
    const twin::Variant& variant = work.variants[slot(v)];
    for (int p = 0; p < variant.count; ++p) {
      const bool repeated =
          p >= variant.repeat_first && p < variant.repeat_first + variant.repeat_count;
      const twin::Phase& phase = work.phases[slot(variant.first + p)];
      const twin::PhasePoint& point = work.point(variant.first + p, pair);
      const double times = variant.weight * (repeated ? variant.repeats : 1) / phase.every;
      cost.time_s += times * point.duration_s;
      cost.energy_j += times * point.duration_s * static_cast<double>(point.power_w);
    }
  }
  return cost;
}

// The simulated card's own answer, for settings at which the power cap binds.
Result<Cost> simulated(const twin::Work& work, const twin::DeviceModel& device,
                       const policy::ClockSetting& setting) {
  VirtualClock clock;
  twin::Twin twin(clock);
  twin.add_card(device);
  GPOEO_TRY(const auto card, twin::open_device(twin, 0, gpu::Access::kControl));
  gpu::Controls& controls = *card->controls();
  const Hertz lowest = megahertz(device.sm_mhz[0]);
  const Hertz slowest = megahertz(device.memory_mhz[slot(device.memory_clock_count - 1)]);
  if (setting.sm) GPOEO_TRY_STATUS(controls.lock_sm_clocks({lowest, *setting.sm}));
  if (setting.memory) GPOEO_TRY_STATUS(controls.lock_memory_clocks({slowest, *setting.memory}));
  if (setting.power_limit) GPOEO_TRY_STATUS(controls.set_power_limit(*setting.power_limit));
  GPOEO_TRY(const auto job, twin.attach(0, work));
  static_cast<void>(job);
  clock.advance(to_duration(Seconds(10 * device.thermal_tau_s)));
  GPOEO_TRY(const auto before, twin::truth(twin, 0));
  constexpr std::int64_t kIterations = 60;
  const auto& first = before.jobs.at(0);
  while (true) {
    clock.advance(std::chrono::seconds(20));
    GPOEO_TRY(const auto after, twin::truth(twin, 0));
    const auto& last = after.jobs.at(0);
    if (last.iterations < first.iterations + kIterations) continue;
    const auto n = static_cast<double>(last.iterations - first.iterations);
    return Cost{static_cast<double>(last.end_ns - first.end_ns) * 1e-9 / n,
                (last.iterations_energy_j - first.iterations_energy_j) / n};
  }
}

}  // namespace

Result<Truth> Truth::of(const twin::JobSpec& job, const twin::DeviceModel& device) {
  twin::JobSpec steady = job;
  twin::make_steady(steady);
  steady.lengths.clear();
  GPOEO_TRY(auto compiled, twin::compile(steady, device));
  const std::shared_ptr<const twin::Work> work = std::move(compiled);
  const auto cost_at = [&](int pair, const policy::ClockSetting& setting) -> Result<Cost> {
    const auto peak = static_cast<double>(work->peak_power_w[0][slot(pair)]);
    if (work->cap_included[0] || peak < 0.95 * device.limit_default_w) {
      return uncapped(*work, pair);
    }
    return simulated(*work, device, setting);
  };
  const int default_pair = device.pair(0, device.default_sm);
  GPOEO_TRY(const Cost base, cost_at(default_pair, {}));
  Truth truth;
  truth.default_power_w_ = base.energy_j / base.time_s;
  truth.points_.push_back({});
  truth.base_ = {.time = base.time_s, .energy = base.energy_j};
  truth.work_ = work;
  truth.device_ = std::make_shared<const twin::DeviceModel>(device);
  truth.default_sm_ = megahertz(device.sm_mhz[slot(device.default_sm)]);
  truth.default_memory_ = megahertz(device.memory_mhz[0]);
  truth.default_limit_ = Watts(device.limit_default_w);
  if (device.limit_step_w > 0) {
    for (int i = 0; i < device.default_sm; ++i) {
      policy::ClockSetting setting;
      setting.power_limit = Watts(device.limit_min_w + i * device.limit_step_w);
      const Cost cost = uncapped(*work, device.pair(0, i));
      truth.points_.push_back(
          {setting, {.time = cost.time_s / base.time_s, .energy = cost.energy_j / base.energy_j}});
    }
    return truth;
  }
  for (int m = 0; m < device.memory_clock_count; ++m) {
    const int first = device.sm_first[slot(m)];
    for (int s = first; s < first + device.sm_number[slot(m)]; ++s) {
      if (s > device.default_sm || (m == 0 && s == device.default_sm)) continue;
      policy::ClockSetting setting;
      setting.sm = megahertz(device.sm_mhz[slot(s)]);
      if (m > 0) setting.memory = megahertz(device.memory_mhz[slot(m)]);
      GPOEO_TRY(const Cost cost, cost_at(device.pair(m, s), setting));
      truth.points_.push_back(
          {setting, {.time = cost.time_s / base.time_s, .energy = cost.energy_j / base.energy_j}});
    }
  }
  return truth;
}

Response Truth::at(const policy::ClockSetting& setting) const {
  const bool governed = setting.power_limit && device_->limit_step_w <= 0;
  return governed ? under_limit(setting) : nearest(setting);
}

// What a power limit does to the clocks only the simulated card knows.
Response Truth::under_limit(const policy::ClockSetting& setting) const {
  const std::string key = policy::to_string(setting);
  {
    const std::lock_guard lock(known_->mutex);
    if (const auto at = known_->limits.find(key); at != known_->limits.end()) return at->second;
  }
  const auto cost = simulated(*work_, *device_, setting);
  if (!cost) return nearest(setting);  // not a setting of this card: it was never in force
  const Response response{.time = cost->time_s / base_.time,
                          .energy = cost->energy_j / base_.energy};
  const std::lock_guard lock(known_->mutex);
  known_->limits[key] = response;
  return response;
}

Response Truth::nearest(const policy::ClockSetting& setting) const {
  // A bound at the default's clock or above changes nothing.
  const bool slow_memory = setting.memory && *setting.memory < default_memory_;
  const double memory = slow_memory ? setting.memory->value() : default_memory_.value();
  const double sm = std::min(setting.sm.value_or(default_sm_), default_sm_).value();
  const double limit = setting.power_limit.value_or(default_limit_).value();
  const TruthPoint* found = &points_.front();
  double least = std::numeric_limits<double>::infinity();
  for (const TruthPoint& point : points_) {
    const policy::ClockSetting& there = point.setting;
    const double distance =
        std::abs(there.sm.value_or(default_sm_).value() - sm) / 1e6 +
        std::abs(there.memory.value_or(default_memory_).value() - memory) / 1e2 +
        std::abs(there.power_limit.value_or(default_limit_).value() - limit);
    if (distance < least) {
      least = distance;
      found = &point;
    }
  }
  return found->response;
}

double objective_value(policy::Objective objective, const Response& r, double cost_eta,
                       double power_ratio) {
  return policy::objective_value(objective, r.time, r.energy, cost_eta, power_ratio);
}

Oracle oracle(const std::vector<TruthPoint>& points, double max_slowdown,
              policy::Objective objective, double cost_eta, double power_ratio) {
  Oracle best;
  double least = objective_value(objective, best.response, cost_eta, power_ratio);
  for (const TruthPoint& point : points) {
    if (point.response.time > 1 + max_slowdown) continue;
    const double value = objective_value(objective, point.response, cost_eta, power_ratio);
    if (value < least) {
      least = value;
      best = {point.setting, point.response};
    }
  }
  return best;
}

}  // namespace gpoeo::bench
