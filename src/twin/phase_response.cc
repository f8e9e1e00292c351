// SPDX-License-Identifier: Apache-2.0
#include "twin/phase_response.h"

#include <algorithm>
#include <cmath>

#include "twin/card_load.h"

namespace gpoeo::twin {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

double base_duration(const VariantShape& shape, const PhaseSpec& phase) {
  return shape.iteration_s * phase.share / (phase.every == 1 ? shape.total_share : 1.0);
}

// A phase that leaves the GPU's clocks alone, whatever the file says of its response.
AnalyticResponse response_of(const PhaseSpec& phase) {
  if (phase.kind == PhaseKind::kKernel) return phase.response;
  AnalyticResponse response;
  response.compute = response.memory = response.sm_activity = 0.0;
  response.fixed = 1.0;
  response.occupancy = 0.0;
  if (phase.kind == PhaseKind::kCopy) {
    response.memory_activity = 0.02;
    response.pcie_rx_bytes_per_s = phase.response.pcie_rx_bytes_per_s;
    response.pcie_tx_bytes_per_s = phase.response.pcie_tx_bytes_per_s;
  }
  return response;
}

double voltage_ratio_squared(const DeviceModel& d, int sm) {
  const double top = d.sm_mhz[at(d.sm_clock_count - 1)];
  const auto voltage = [&](double mhz) {
    const double up =
        std::max(0.0, mhz - d.voltage_floor_mhz) / std::max(1.0, top - d.voltage_floor_mhz);
    return d.voltage_floor_v + (d.voltage_max_v - d.voltage_floor_v) * up;
  };
  const double ratio = voltage(d.sm_mhz[at(sm)]) / voltage(d.sm_mhz[at(d.default_sm)]);
  return ratio * ratio;
}

void set_activity(PhasePoint& point, Activity activity, double value, double most) {
  point.activity[static_cast<std::size_t>(activity)] =
      static_cast<float>(std::clamp(value, 0.0, most));
}

// Work is conserved: an iteration needs the same cycles and bytes at every clock, so an activity
// (share of peak) scales with (time at default / time) and with the default clock over the clock.
// Energy a cycle goes with V^2, energy a byte is constant.
PhasePoint analytic_point(const PhaseSpec& phase, double base_s, const DeviceModel& d, int memory,
                          int sm) {
  const AnalyticResponse r = response_of(phase);
  const double slower_sm = static_cast<double>(d.sm_mhz[at(d.default_sm)]) / d.sm_mhz[at(sm)];
  const double slower_memory = static_cast<double>(d.memory_mhz[0]) / d.memory_mhz[at(memory)];
  const auto kernel = [&](double c, double m) {
    return r.overlap * std::max(c, m) + (1.0 - r.overlap) * (c + m) + r.fixed;
  };
  const double at_default = std::max(kernel(r.compute, r.memory), 1e-12);
  const double relative = kernel(r.compute * slower_sm, r.memory * slower_memory) / at_default;
  const double rate = 1.0 / std::max(relative, 1e-12);  // work a second, relative to default
  PhasePoint point{};
  point.duration_s = base_s * relative;
  const double idle_w = unloaded_power_w(d, memory, sm, false);
  const double sm_w = d.sm_dynamic_w * r.sm_activity * rate * voltage_ratio_squared(d, sm);
  const double memory_w = d.memory_dynamic_w * r.memory_activity * rate;
  point.power_w = static_cast<float>(idle_w + sm_w + memory_w);
  const bool kernel_runs = phase.kind == PhaseKind::kKernel;
  point.busy = kernel_runs ? 1.0F : 0.0F;
  // SMs are resident while they wait; pipes are active only when they work.
  set_activity(point, Activity::kGrActive, kernel_runs ? 1.0 : 0.0, 1.0);
  const double resident = r.sm_active.value_or(std::min(1.0, 0.3 + r.sm_activity));
  set_activity(point, Activity::kSmActive, kernel_runs ? resident : 0.0, 1.0);
  set_activity(point, Activity::kSmOccupancy, r.occupancy, 1.0);
  const double cycles = rate * slower_sm;
  set_activity(point, Activity::kTensorActive, r.tensor * cycles, 1.0);
  set_activity(point, Activity::kFp64Active, r.fp64 * cycles, 1.0);
  set_activity(point, Activity::kFp32Active, r.fp32 * cycles, 1.0);
  set_activity(point, Activity::kFp16Active, r.fp16 * cycles, 1.0);
  set_activity(point, Activity::kDramActive, r.memory_activity * rate * slower_memory, 1.0);
  set_activity(point, Activity::kPcieTxBytesPerS, r.pcie_tx_bytes_per_s * rate, 1e12);
  set_activity(point, Activity::kPcieRxBytesPerS, r.pcie_rx_bytes_per_s * rate, 1e12);
  return point;
}

struct MeasuredMean {
  double relative_time, power_w;
  response::CounterValues counters;
};

// The table's answer; below its lowest clock carried on: time as a + b / f and power straight
// through the two lowest points of the curve (never under the card's own power at idle).
MeasuredMean measured_mean(const response::WorkloadCurves& curves, const DeviceModel& d,
                           double sm_mhz, double memory_mhz) {
  const auto ask = [&](double mhz) {
    response::Setting setting;
    if (d.limit_step_w > 0) {
      // As the limits were numbered; clocks are the driver's.
      const auto* clock = std::find(d.sm_mhz.begin(), d.sm_mhz.end(), static_cast<int>(mhz));
      setting.power_limit_w =
          d.limit_min_w + d.limit_step_w * static_cast<double>(clock - d.sm_mhz.begin());
      return curves.at(setting);
    }
    setting.sm_mhz = mhz;
    setting.mem_mhz = memory_mhz;
    return curves.at(setting);
  };
  const response::Response here = ask(sm_mhz);
  MeasuredMean mean{here.relative_time, here.power_w.value_or(curves.default_power_w()),
                    here.counters};
  const double lowest = here.used.sm_mhz.value_or(sm_mhz);
  if (!here.clamped || sm_mhz >= lowest) return mean;
  const response::Response next = ask(lowest * 1.2);
  const double next_mhz = next.used.sm_mhz.value_or(lowest * 1.2);
  if (!(next_mhz > lowest)) return mean;
  const double slope =
      std::max(0.0, (here.relative_time - next.relative_time) / (1 / lowest - 1 / next_mhz));
  const double inverse = std::min(slope, here.relative_time * lowest);  // a >= 0
  mean.relative_time = here.relative_time + inverse * (1 / sm_mhz - 1 / lowest);
  const double watts_per_mhz =
      std::max(0.0, (next.power_w.value_or(mean.power_w) - mean.power_w) / (next_mhz - lowest));
  mean.power_w =
      std::max(std::min(d.idle_w, mean.power_w), mean.power_w - watts_per_mhz * (lowest - sm_mhz));
  return mean;
}

// Levels of the phases around their mean, drawn together so far that mean * level stays within
// [least, most]; their weighted mean stays exactly 1.
std::vector<double> fitted_levels(const std::vector<double>& levels, double mean, double least,
                                  double most) {
  double amplitude = 1.0;
  for (const double level : levels) {
    if (level > 1 && mean > 0)
      amplitude = std::min(amplitude, std::max(0.0, most / mean - 1) / (level - 1));
    if (level < 1 && mean > 0)
      amplitude = std::min(amplitude, std::max(0.0, 1 - least / mean) / (1 - level));
  }
  std::vector<double> fitted;
  for (const double level : levels) fitted.push_back(1 + amplitude * (level - 1));
  return fitted;
}

std::vector<double> relative_levels(const VariantShape& shape) {
  const VariantSpec& spec = shape.spec;
  double mean = 0;
  for (int p = 0; p < static_cast<int>(spec.phases.size()); ++p) {
    const PhaseSpec& phase = spec.phases[at(p)];
    const bool repeated = p >= spec.repeat_first && p < spec.repeat_first + spec.repeat_count;
    if (phase.every == 1) mean += phase.level * phase.share * (repeated ? spec.repeats : 1);
  }
  mean /= shape.total_share;
  std::vector<double> levels;
  for (const PhaseSpec& phase : spec.phases) levels.push_back(mean > 0 ? phase.level / mean : 1.0);
  return levels;
}

}  // namespace

void fill_analytic(const VariantShape& shape, const DeviceModel& d, std::span<PhasePoint> points) {
  const std::size_t pairs = at(d.pair_count());
  for (std::size_t p = 0; p < shape.spec.phases.size(); ++p) {
    const PhaseSpec& phase = shape.spec.phases[p];
    const double base_s = base_duration(shape, phase);
    for (int m = 0; m < d.memory_clock_count; ++m)
      for (int s = 0; s < d.sm_clock_count; ++s)
        points[p * pairs + at(d.pair(m, s))] = analytic_point(phase, base_s, d, m, s);
  }
}

void fill_measured(const VariantShape& shape, const response::WorkloadCurves& curves,
                   const DeviceModel& d, std::span<PhasePoint> points) {
  const std::size_t pairs = at(d.pair_count());
  const std::vector<double> levels = relative_levels(shape);
  for (int m = 0; m < d.memory_clock_count; ++m) {
    for (int s = 0; s < d.sm_clock_count; ++s) {
      const MeasuredMean mean = measured_mean(curves, d, d.sm_mhz[at(s)], d.memory_mhz[at(m)]);
      const std::vector<double> power =
          fitted_levels(levels, mean.power_w, unloaded_power_w(d, m, s, false),
                        std::max(mean.power_w, d.limit_default_w));
      for (std::size_t p = 0; p < levels.size(); ++p) {
        const PhaseSpec& phase = shape.spec.phases[p];
        PhasePoint& point = points[p * pairs + at(d.pair(m, s))];
        point = {};
        point.duration_s = base_duration(shape, phase) * mean.relative_time;
        point.power_w = static_cast<float>(mean.power_w * power[p]);
        point.busy = phase.kind == PhaseKind::kKernel ? 1.0F : 0.0F;
      }
      for (std::size_t c = 0; c < response::kCounterCount; ++c) {
        const double value = mean.counters.values[c].value_or(0.0);
        const bool fraction = c < static_cast<std::size_t>(Activity::kPcieTxBytesPerS);
        const auto fitted = fitted_levels(levels, value, 0.0, fraction ? 1.0 : 1e12);
        for (std::size_t p = 0; p < levels.size(); ++p)
          points[p * pairs + at(d.pair(m, s))].activity[c] = static_cast<float>(value * fitted[p]);
      }
      // Where the table knows how long kernels ran, utilisation follows it.
      const auto gr = static_cast<std::size_t>(Activity::kGrActive);
      if (mean.counters.values[gr])
        for (std::size_t p = 0; p < levels.size(); ++p) {
          PhasePoint& point = points[p * pairs + at(d.pair(m, s))];
          point.busy = point.activity[gr];
        }
    }
  }
}

}  // namespace gpoeo::twin
