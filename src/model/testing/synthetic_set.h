// SPDX-License-Identifier: Apache-2.0
// A made-up training set with a known law, for tests: time = host + max(compute x, memory r),
// softly, power falling with the clock.
#pragma once

#include <fmt/format.h>

#include <cmath>

#include "model/dataset.h"

namespace gpoeo::model::testing {

inline Device test_card() {
  Device device;
  device.name = "Test Card";
  device.sm_mhz = 1500;
  device.memory_mhz = 1000;
  device.power_limit_w = 400;
  device.sm_count = 100;
  device.bandwidth_gb_per_s = 1000;
  return device;
}

// `memories`: slow-downs of the memory clocks to sweep; 1 is the default.
inline Dataset synthetic_set(int workloads, const std::vector<double>& memories = {1}) {
  Dataset dataset;
  dataset.sources = {"synthetic"};
  for (int i = 0; i < workloads; ++i) {
    Example e;
    e.workload = fmt::format("w{:02}", i);
    e.family = fmt::format("f{:02}", i / 2);
    e.device = test_card();
    const double busy = 0.3 + 0.7 * ((i * 7) % 10) / 9.0;
    const double dram = ((i * 3) % 10) / 10.0;
    e.profile.power_w = 100 + 200 * busy;
    e.profile.counters[response::Counter::kGrActive] = busy;
    e.profile.counters[response::Counter::kSmActive] = 0.9 * busy;
    e.profile.counters[response::Counter::kDramActive] = dram * busy;
    e.features = make_features(e.device, e.profile);
    for (const double memory : memories) {
      Line line;
      line.memory_slowdown = memory;
      line.is_default = memory == 1;
      const auto time = [&](double x, double r) {
        return 1 - busy + busy * std::hypot((1 - 0.5 * dram) * x, dram * r);
      };
      for (int p = 0; p < 20; ++p) {
        const double x = 1 / (1 - 0.03 * p);
        line.sm_slowdown.push_back(x);
        line.log_time.push_back(std::log(time(x, memory) / time(1, 1)));
        line.log_power.push_back((0.3 + 0.5 * busy) * std::log(1 / x) - 0.1 * std::log(memory));
      }
      e.lines.push_back(line);
    }
    dataset.examples.push_back(e);
  }
  return dataset;
}

}  // namespace gpoeo::model::testing
