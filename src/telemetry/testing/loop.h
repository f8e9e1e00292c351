// SPDX-License-Identifier: Apache-2.0
// A sampler and a meter driven over virtual time as the control loop drives them.
#pragma once

#include <algorithm>
#include <functional>

#include "base/clock.h"
#include "telemetry/energy_meter.h"
#include "telemetry/sampler.h"
#include "telemetry/testing/synthetic_device.h"

namespace gpoeo::telemetry {

struct Loop {
  VirtualClock clock;
  SyntheticDevice device;
  Sampler sampler;
  EnergyMeter meter;
  // Polls come when the sampler wants them, but never closer than this (a coarse control loop).
  Duration poll_at_least{};
  std::function<void()> each_poll;

  explicit Loop(SyntheticDevice::Power power, SyntheticHabits habits = {},
                SamplerOptions options = {})
      : device(clock, std::move(power), habits),
        sampler(device, clock, options),
        meter(sampler.history()) {}

  void run_until(double t_s) {
    const Instant end = device.at(t_s);
    while (clock.now() < end) {
      const Instant now = clock.now();
      const Instant next = std::max(sampler.poll(now), now + poll_at_least);
      if (meter.update()) sampler.set_counter_role(meter.role());
      if (each_poll) each_poll();
      clock.advance(std::max(Duration(1), std::min(next, end) - clock.now()));
    }
  }
};

}  // namespace gpoeo::telemetry
