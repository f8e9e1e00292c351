// SPDX-License-Identifier: Apache-2.0
// Reads one GPU on a schedule, without a thread of its own: the owner calls poll() and is told
// when to call again. What it reads goes into a bounded History; what happens goes into events.
//
// Schedule, with what a call costs on an H200 (CPU time, warm to cold): power samples in batches of
// 0.2-1 s as the driver's buffer allows (12 us-0.7 ms); clocks and event reasons each 0.4 s (11 us-
// 0.1 ms each); utilisation each second, temperature each 2 s, processes each 10 s; the energy
// counter (5-7 ms) as energy_schedule.h says, rationed by its own cost. That is about 10 calls a
// second, 0.2 % of a core at worst; bench/sampler_cost prints the true number.
// Where the driver has no sample buffer, power is polled each 100 ms instead.
//
// Failures: a reading that is not supported, or not permitted, is dropped for good and listed; one
// that fails is counted, logged once and tried again after 1, 2, 4 ... 60 s, the others go on; a
// lost GPU is an event, after which one cheap call a few seconds looks whether it is back.
//
// Thread rule: one thread, the one that owns the Device. poll() takes as long as the driver does.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "gpu/device.h"
#include "telemetry/energy_schedule.h"
#include "telemetry/history.h"

namespace gpoeo::telemetry {

struct SamplerOptions {
  Duration power_batch_min = std::chrono::milliseconds(200);
  Duration power_batch_max = std::chrono::seconds(1);
  Duration clocks = std::chrono::milliseconds(400);  // SM and memory clock, event reasons
  Duration utilization = std::chrono::seconds(1);
  Duration temperature = std::chrono::seconds(2);
  Duration processes = std::chrono::seconds(10);
  Duration polled_power = std::chrono::milliseconds(100);  // only without a sample buffer
  // A spacing beyond this many usual ones is a gap in the power samples.
  double gap_factor = 2.6;
  // Power above this multiple of the card's highest limit (or above 3 kW where that is unknown)
  // is no reading: short spikes reach 1.6 times the limit on real cards.
  double absurd_power_factor = 3.0;
};

enum class SamplerEventKind {
  kReadingDropped,    // not supported or not permitted: will not be tried again
  kReadingFailing,    // failed; will be tried again
  kReadingRecovered,  // answers again
  kPowerGap,          // samples are missing for `duration` before `time`
  kDeviceLost,
  kDeviceBack,
};

struct SamplerEvent {
  SamplerEventKind kind;
  Instant time;
  gpu::Reading reading = gpu::Reading::kCount;  // kCount: the whole device
  Duration duration{};
  std::string text;
};

struct ReadingStats {
  std::uint64_t calls = 0;
  std::uint64_t failures = 0;
  Duration spent{};  // on the sampler's clock, so 0 on virtual time
  bool dropped = false;
};

// Power samples that were refused, by reason.
struct RefusedSamples {
  std::uint64_t duplicate = 0;     // time stamp already seen
  std::uint64_t out_of_order = 0;  // older than the newest one taken
  std::uint64_t future = 0;        // later than now + 100 ms
  std::uint64_t absurd = 0;        // negative, not finite, or far above any limit
  std::uint64_t total() const { return duplicate + out_of_order + future + absurd; }
};

class Sampler {
 public:
  // `device` and `clock` must outlive it. `clock` times the calls; the schedule follows the `now`
  // given to poll().
  Sampler(gpu::Device& device, const Clock& clock, SamplerOptions options = {});

  // Makes the calls that are due and returns when it wants to be called next (later than `now`).
  // Calling early or late is harmless: early does little, late loses what the driver's buffer no
  // longer has and says so as a gap.
  Instant poll(Instant now);

  // The next poll reads power, clocks and event reasons whatever the schedule says: before a
  // decision, and at each poll while a clock write settles.
  void request_readings() { readings_requested_ = true; }
  // The next polls pin the energy counter to its tick: call it near both edges of a window that
  // must be exact. Cheap to call when the counter is not needed: then it does nothing.
  void request_energy_mark() { energy_schedule_.request_mark(last_poll_); }
  // The energy counter is only a slow check (samples are trusted) or carries the figures.
  void set_counter_role(CounterRole role) { energy_schedule_.set_role(role); }
  // Activity counters each `period` (at least the device's own, 100 ms on an H200); nullopt (the
  // default) turns them off. They cost 0.3 ms a call, so only profile windows ask for them.
  void set_counter_period(std::optional<Duration> period);

  const History& history() const { return history_; }
  // Events since the last call, oldest first. At most 1000 are kept; the rest are only counted.
  std::vector<SamplerEvent> take_events();
  bool device_lost() const { return lost_since_.has_value(); }

  const ReadingStats& stats(gpu::Reading reading) const {
    return readings_[static_cast<int>(reading)].stats;
  }
  // Readings this device does not have, for the report's "not available".
  std::vector<gpu::Reading> unavailable() const;
  const RefusedSamples& refused() const { return refused_; }
  // The usual distance of two power samples (median); absent until there are ten.
  std::optional<Duration> power_spacing() const { return spacing_; }
  // Time the power samples do not cover, and in how many gaps.
  Duration gap_time() const { return gap_time_; }
  std::uint64_t gaps() const { return gaps_; }
  double calls_per_second() const;
  // Share of the time since the first poll that was spent inside driver calls.
  double call_time_share() const;

 private:
  struct ReadingState {
    ReadingStats stats;
    Instant due{};
    int failed_in_a_row = 0;
    Duration back_off{};
  };
  static constexpr int kReadings = static_cast<int>(gpu::Reading::kCount);

  ReadingState& state(gpu::Reading reading) { return readings_[static_cast<int>(reading)]; }
  bool due(gpu::Reading reading, Instant now) const;
  template <typename Call>
  auto read(gpu::Reading reading, Instant now, Duration period, Call call);
  void note_failure(gpu::Reading reading, Instant now, const Error& error);
  void note_success(gpu::Reading reading, Instant now);
  void add_event(SamplerEvent event);

  void drop(gpu::Reading reading, Instant now, std::string text);
  void lose_device(Instant now, const Error& error);
  void read_power(Instant now);
  void poll_power(Instant now);
  void take_samples(const std::vector<gpu::PowerSample>& samples, Instant now);
  void check_gap(Instant before, Instant time);
  void read_status(Instant now);
  void read_energy(Instant now);
  void read_counters(Instant now);
  void read_processes(Instant now);
  void look_whether_back(Instant now);
  Instant next_wanted(Instant now) const;

  gpu::Device& device_;
  const Clock& clock_;
  SamplerOptions options_;
  History history_;
  EnergySchedule energy_schedule_;
  std::array<ReadingState, kReadings> readings_;
  std::vector<SamplerEvent> events_;
  RefusedSamples refused_;
  std::optional<Instant> first_poll_;
  Instant last_poll_{};
  std::optional<Instant> lost_since_;
  Instant look_again_{};
  Duration look_wait_{};
  std::optional<Duration> counter_period_;
  std::optional<Duration> spacing_;
  Duration power_period_{};
  bool depth_known_ = false;
  Instant depth_due_{};
  double absurd_above_w_ = 0;
  Duration gap_time_{};
  std::uint64_t gaps_ = 0;
  bool readings_requested_ = false;
};

}  // namespace gpoeo::telemetry
