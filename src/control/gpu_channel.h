// SPDX-License-Identifier: Apache-2.0
// All that the control loop has of one GPU: its readings, its energy, its clocks.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/energy_book.h"
#include "control/guard.h"
#include "policy/policy.h"
#include "report/session.h"
#include "telemetry/counter_average.h"
#include "telemetry/energy_meter.h"
#include "telemetry/iteration_energy.h"
#include "telemetry/sampler.h"
#include "telemetry/settle.h"
#include "telemetry/trace_file.h"

namespace gpoeo::control {

// One GPU of the job. `guard` is absent when clocks may not be set.
struct GpuInput {
  gpu::Device* device = nullptr;
  std::optional<Guard> guard;
  std::optional<telemetry::TraceWriter> trace;
};

// Thread rule: the thread that owns the device.
class GpuChannel {
 public:
  GpuChannel(GpuInput input, const Clock& clock);

  // What one poll brought: when to poll next and, now and then, a stretch for the books.
  struct Polled {
    Instant next_poll;
    std::optional<EnergyStretch> stretch;
  };
  Polled poll(Instant now);
  // The last stretches, to `now` or as far as readings go.
  std::vector<EnergyStretch> close(Instant now);
  // How its energy is to be cut into stretches (energy_book.h).
  EnergyBook& book() { return *book_; }

  // Default settings give back what was found. kNotSupported without a guard. An error leaves the
  // clocks unknown.
  Status set_clocks(const policy::ClockSetting& setting);
  // The first control that could not be given back, if any; each one is in take_notes().
  Status restore();
  // When the card had settled after the last set_clocks(); nullopt: not yet.
  std::optional<Instant> settled(Instant now);
  // Whether it runs at what was asked.
  bool held() const;

  // Of the whole card in [from, to]; errors as EnergyMeter::energy, and then more readings are
  // asked for.
  Result<telemetry::WindowEnergy> energy(Instant from, Instant to);
  // No kernel in the driver's newest utilisation; without one, no judgement: not idle.
  bool idle(Instant now) const;
  const telemetry::History& history() const { return sampler_->history(); }
  Result<telemetry::IterationEnergy> iteration_energy(std::span<const Instant> ends);

  // Counter readings each `period` from now on; nullopt: none any more.
  void count_activity(std::optional<Duration> period) { sampler_->set_counter_period(period); }
  // Over whole iterations, from those readings.
  Result<telemetry::CounterAverage> activity(std::span<const Instant> ends) const;
  // What the driver said between two instants, averaged; absent = it said nothing.
  struct Condition {
    std::optional<double> gpu_utilization, memory_utilization;
    std::optional<Hertz> sm_clock, memory_clock;
  };
  Condition condition(Instant from, Instant to) const;

  // Upper end of the clock lock that was in force before us; nullopt: none, or it cannot be told.
  std::optional<Hertz> found_upper_clock() const;
  // Whether some control is not as it was found.
  bool touched() const { return guard_ && guard_->touched(); }
  gpu::Device& device() const { return *device_; }
  bool lost() const { return sampler_->device_lost(); }
  std::vector<std::string> take_notes();
  std::vector<std::string> healed_notes() const;
  unsigned clock_writes() const { return guard_ ? guard_->writes() : 0; }
  std::optional<Watts> newest_power() const;
  std::optional<Hertz> newest_sm_clock() const;
  report::GpuSection section() const;

 private:
  Status set_sm(const std::optional<Hertz>& upper);
  Status set_memory(const std::optional<Hertz>& upper);
  Status set_power_limit(const std::optional<Watts>& limit);
  void note_restored(const RestoreOutcome& outcome);

  gpu::Device* device_;
  const Clock& clock_;
  std::optional<Guard> guard_;
  std::optional<telemetry::TraceWriter> trace_;
  // On the heap: they hold references to one another's data.
  std::unique_ptr<telemetry::Sampler> sampler_;
  std::unique_ptr<telemetry::EnergyMeter> meter_;
  std::unique_ptr<EnergyBook> book_;
  std::optional<telemetry::Settle> settle_;
  std::optional<gpu::ClockRange> asked_;
  // What we asked of one control last. After a write that failed nobody knows what is in force, and
  // whatever is wanted next is written.
  template <typename T>
  struct Asked {
    std::optional<T> value;
    bool sure = true;
    bool stands(const std::optional<T>& wanted) const { return sure && value == wanted; }
    void restored() { *this = {}; }
  };
  Asked<Hertz> sm_, memory_;
  Asked<Watts> power_limit_;

  std::string clocks_found_ = "not asked";
  std::string clocks_restored_;
  bool restore_failed_ = false;
  std::vector<std::string> notes_;
};

}  // namespace gpoeo::control
