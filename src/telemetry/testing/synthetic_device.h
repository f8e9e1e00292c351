// SPDX-License-Identifier: Apache-2.0
// A read-only device on virtual time for the tests of this module: any power over time, a sensor
// with chosen habits, and every failure on demand. It knows the truth. (The twin is the full
// simulator; this one sits below it and can do what no sane card does.)
//
// Thread rule: one thread.
#pragma once

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "base/clock.h"
#include "gpu/device.h"

namespace gpoeo::telemetry {

struct SyntheticHabits {
  double sample_period_s = 0.02;
  double sample_window_s = 0.02;  // a sample is the mean over this much before it
  double sample_jitter_s = 0;     // each stamp uniformly this much late
  double buffer_s = 2.4;          // how far back the driver's buffer reaches
  double tick_s = 0.1;
  double tick_phase_s = 0.03;
  double tick_jitter_s = 0;   // each tick uniformly this much late
  double counter_cost_s = 0;  // a call of the energy counter advances the clock by this
};

class SyntheticDevice final : public gpu::Device {
 public:
  using Power = std::function<double(double t_s)>;  // watts at seconds since start

  SyntheticDevice(VirtualClock& clock, Power power, SyntheticHabits chosen = {},
                  double horizon_s = 130)
      : habits(chosen), clock_(clock), start_(clock.now()) {
    // The buffer is full from the start: the card ran before us.
    const auto steps = static_cast<std::size_t>((horizon_s + kBefore) / kStep);
    energy_.reserve(steps + 1);
    energy_.push_back(0);
    for (std::size_t i = 0; i < steps; ++i) {
      energy_.push_back(energy_.back() +
                        power(-kBefore + (static_cast<double>(i) + 0.5) * kStep) * kStep);
    }
    identity_.uuid = "GPU-synthetic";
    identity_.name = "Synthetic";
    for (auto& support : capabilities_.readings) support = gpu::Support::kYes;
    capabilities_.readings[static_cast<int>(gpu::Reading::kCounters)] = gpu::Support::kNo;
    capabilities_.power_limits = gpu::PowerLimits{Watts(100), Watts(700), Watts(700)};
  }

  // Truth.
  double energy_j(double t0_s, double t1_s) const { return up_to(t1_s) - up_to(t0_s); }
  Instant at(double t_s) const { return start_ + to_duration(Seconds(t_s)); }
  double now_s() const { return to_seconds(clock_.now() - start_).value(); }
  std::size_t calls(gpu::Reading r) const {
    const auto it = calls_.find(r);
    return it == calls_.end() ? 0 : it->second;
  }

  // Switches of the test.
  SyntheticHabits habits;
  std::function<std::optional<Error>(gpu::Reading, std::size_t call)> fault;
  std::function<double(double energy_j)> counter_reads;  // what the counter shows instead
  std::function<bool(double t_s)> sample_lost;
  std::vector<gpu::PowerSample> extra_samples;  // given once, after the true ones
  std::function<double(double t_s)> sm_clock_mhz = [](double) { return 1980.0; };
  std::function<std::uint64_t(double t_s)> reasons = [](double) { return std::uint64_t{0}; };
  gpu::Capabilities capabilities_;

  const gpu::DeviceIdentity& identity() const override { return identity_; }
  const gpu::Capabilities& capabilities() const override { return capabilities_; }

  Result<std::vector<gpu::PowerSample>> power_samples_since(Instant since) override {
    if (auto e = called(gpu::Reading::kPowerSamples)) return std::unexpected(*e);
    std::vector<gpu::PowerSample> samples;
    const double now = now_s();
    auto k = static_cast<long long>(std::ceil((now - habits.buffer_s) / habits.sample_period_s));
    for (;; ++k) {
      const double t = static_cast<double>(k) * habits.sample_period_s +
                       habits.sample_jitter_s * noise(static_cast<std::uint64_t>(k + 1000000));
      if (t > now) break;
      if (at(t) <= since || (sample_lost && sample_lost(t))) continue;
      const double e = energy_j(t - habits.sample_window_s, t);
      samples.push_back({at(t), Watts(e / habits.sample_window_s)});
    }
    samples.insert(samples.end(), extra_samples.begin(), extra_samples.end());
    extra_samples.clear();
    return samples;
  }
  Result<Watts> power_instant() override {
    if (auto e = called(gpu::Reading::kPowerInstant)) return std::unexpected(*e);
    return Watts(energy_j(now_s() - 0.025, now_s()) / 0.025);
  }
  Result<Watts> power_average() override {
    if (auto e = called(gpu::Reading::kPowerAverage)) return std::unexpected(*e);
    return Watts(energy_j(now_s() - 1, now_s()));
  }
  Result<Joules> energy_counter() override {
    if (auto e = called(gpu::Reading::kEnergyCounter)) return std::unexpected(*e);
    const double t = now_s() + habits.counter_cost_s / 2;
    clock_.advance(to_duration(Seconds(habits.counter_cost_s)));
    auto n = static_cast<long long>(std::floor((t - habits.tick_phase_s) / habits.tick_s));
    if (tick_time(n) > t) --n;
    const double truth = 5000 + up_to(tick_time(n));
    return Joules(counter_reads ? counter_reads(truth) : truth);
  }
  Result<Hertz> sm_clock() override {
    if (auto e = called(gpu::Reading::kSmClock)) return std::unexpected(*e);
    return megahertz(sm_clock_mhz(now_s()));
  }
  Result<Hertz> memory_clock() override {
    if (auto e = called(gpu::Reading::kMemoryClock)) return std::unexpected(*e);
    return megahertz(3201);
  }
  Result<gpu::Utilization> utilization() override {
    if (auto e = called(gpu::Reading::kUtilization)) return std::unexpected(*e);
    return gpu::Utilization{0.9, 0.4};
  }
  Result<Celsius> temperature() override {
    if (auto e = called(gpu::Reading::kTemperature)) return std::unexpected(*e);
    return Celsius(55);
  }
  Result<gpu::EventReasons> event_reasons() override {
    if (auto e = called(gpu::Reading::kEventReasons)) return std::unexpected(*e);
    return gpu::EventReasons{reasons(now_s())};
  }
  Result<gpu::Counters> counters() override {
    if (auto e = called(gpu::Reading::kCounters)) return std::unexpected(*e);
    return gpu::Counters{};
  }
  Result<std::vector<gpu::ComputeProcess>> compute_processes() override {
    if (auto e = called(gpu::Reading::kProcesses)) return std::unexpected(*e);
    return std::vector<gpu::ComputeProcess>{{4711, 1 << 20}};
  }
  Result<Watts> power_limit() override { return Watts(700); }
  gpu::Controls* controls() override { return nullptr; }

 private:
  static constexpr double kStep = 0.0005;
  static constexpr double kBefore = 5;

  double up_to(double t_s) const {
    const double x =
        std::clamp((t_s + kBefore) / kStep, 0.0, static_cast<double>(energy_.size() - 1));
    const auto i = std::min(static_cast<std::size_t>(x), energy_.size() - 2);
    return energy_[i] + (x - static_cast<double>(i)) * (energy_[i + 1] - energy_[i]);
  }
  double tick_time(long long n) const {
    return habits.tick_phase_s + static_cast<double>(n) * habits.tick_s +
           habits.tick_jitter_s * noise(static_cast<std::uint64_t>(n + 5000000));
  }
  // 0..1, the same for the same number (splitmix64).
  static double noise(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1.0p-53;
  }
  std::optional<Error> called(gpu::Reading r) {
    const std::size_t call = ++calls_[r];
    return fault ? fault(r, call) : std::nullopt;
  }

  VirtualClock& clock_;
  Instant start_;
  gpu::DeviceIdentity identity_;
  std::vector<double> energy_;
  std::map<gpu::Reading, std::size_t> calls_;
};

}  // namespace gpoeo::telemetry
