// SPDX-License-Identifier: Apache-2.0
// The core of the twin: one card's whole state as plain old data, and pure functions that move it
// through time. Event-driven: between two events (end of a phase, sensor tick, clock change,
// governor step) everything has a closed form, so the cost is per event and not per time step.
//
// advance() only ever stops at events, so a state does not depend on how often it was advanced:
// same seed and same commands at the same times give the same bytes.
//
// Physics (constants from DeviceModel; docs/twin.md explains the choices):
//   power    P = P_work(phase, clocks) + k * (T - T_ss),   k = leakage_w_per_k
//   thermal  tau dT/dt = T_amb + R P - T,                  T_ss = T_amb + R * mean P_work
// so that at thermal balance a measured table's mean power comes out exactly.
//
// Thread rule: plain data; whoever owns the state serialises.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "base/clock.h"
#include "base/result.h"
#include "twin/device_model.h"
#include "twin/work.h"

namespace gpoeo::twin {

inline constexpr int kMaxJobs = 4;
inline constexpr int kSampleRing = 256;
inline constexpr int kIterationRing = 1024;
inline constexpr int kFinishedJobs = 8;

struct Random {
  std::array<std::uint64_t, 4> s;  // xoshiro256++ (Blackman, Vigna 2018; public domain algorithm)
};

struct StampedValue {
  std::int64_t t_ns;
  float value;
  float second;
};

// The newest `kSampleRing` values; `written` counts all there ever were.
struct SampleRing {
  std::uint64_t written;
  std::array<StampedValue, kSampleRing> values;
};

// A sensor that shows the mean over a window: `energy` at the window's begin and at ticks.
struct WindowedPower {
  std::int64_t next_tick_ns, window_begin_ns;  // next tick; when its window begins
  double energy_at_begin_j;
  std::int64_t begun_ns;  // when energy_at_begin_j was taken
  double shown_w;
  std::int64_t shown_ns;  // time stamp of shown_w; 0 = none yet
};

enum class JobPhaseState : std::int32_t { kFree, kRunning, kDone };
enum class JobEnd : std::int32_t { kRunning, kDone, kDetached, kDied };

// What the judge learns of one job. Reference: the same iterations, alone, at default clocks.
struct JobTruth {
  std::uint64_t generation;
  std::int64_t pid;
  std::array<char, 48> name;
  std::int64_t start_ns, end_ns;  // end_ns: last iteration's end, or when it left
  std::int64_t iterations;
  double energy_j;  // the card's energy since the start, shared equally among running jobs
  double iterations_energy_j;  // the part of it up to the last iteration's end
  double reference_s, reference_j;
  JobEnd end;
  std::int32_t reserved;
};

struct JobSlot {
  JobPhaseState state;
  std::int32_t stage, variant, phase, repeat;  // phase: position inside the variant
  std::int32_t phase_pair;                     // clock pair that phase_end_ns was worked out for
  std::uint64_t process_start;                 // /proc/PID/stat field 22; 0 = no process to watch
  std::int64_t iteration_limit;                // 0 = endless
  std::int64_t stage_iteration;
  double left;  // share of the current phase not yet done, at `marked_ns`
  std::int64_t marked_ns, phase_end_ns;
  double phase_duration_s;     // whole phase at the present clocks, alone
  double scale, length_scale;  // of the current iteration's time
  double time_drift, power_drift;
  std::int64_t drift_ns;
  double pending_reference_s, pending_reference_j;  // of the iteration under way
  Random random;
  JobTruth truth;
  std::array<std::int64_t, kIterationRing>
      iteration_end_ns;  // of iteration i at i % kIterationRing
};

// A clock request on its way into force.
struct ClockCommand {
  std::int32_t pending;
  std::int32_t min_index, max_index;
  std::int32_t reserved;
  std::int64_t in_force_ns;
};

struct CardState {
  std::uint64_t seed;
  std::int64_t start_ns;
  std::int64_t t_ns;        // of the last event; everything below holds then
  std::int64_t horizon_ns;  // events up to here are done

  // Clocks. Index into the device's tables; locks hold the indices asked for.
  std::int32_t sm, memory;
  std::int32_t sm_locked, memory_locked;  // flags
  std::int32_t sm_min, sm_max;            // asked for, ascending index
  std::int32_t memory_min, memory_max;    // memory index: 0 is the highest clock
  ClockCommand sm_command, memory_command;
  std::int32_t force_sm_min, force_sm_max, force_memory;  // in force after latency
  std::int32_t governor_steps;  // SM clock steps taken off by the power cap
  std::int64_t governor_next_ns;
  double governor_filtered_w;
  std::int64_t governor_filtered_ns;
  double power_limit_w;
  std::int64_t idle_since_ns;  // 0 = busy
  std::int32_t idle;           // fallen to idle clocks
  std::int32_t lost;
  std::uint64_t clock_writes;
  std::int32_t write_failure_in, write_failure_kind;

  // Physics at t_ns.
  double temperature_c;
  double work_w, mean_work_w;  // present P_work; its mean, which sets T_ss
  double energy_j;
  double busy_integral_s;
  std::array<double, kActivityCount> activity_integral;
  double busy;
  std::array<double, kActivityCount> activity;

  // Sensors.
  WindowedPower samples, instant, average;
  SampleRing power_ring, utilization_ring;
  std::int64_t energy_next_ns, utilization_next_ns, gpm_next_ns;
  double energy_shown_j;
  double busy_at_window_s, dram_at_window;
  double utilization_shown, memory_utilization_shown;
  std::int64_t gpm_shown_ns;
  std::array<double, kActivityCount> gpm_shown;
  // Energies for overlapping windows (the average sensor's window is longer than its period).
  std::array<double, 64> average_history_j;
  double sensor_drift;
  std::int64_t sensor_drift_ns;
  Random random;

  // Jobs.
  std::int32_t running;  // slots in kRunning
  std::int32_t reserved;
  std::uint64_t next_generation;
  std::array<JobSlot, kMaxJobs> jobs;
  std::uint64_t finished_count;
  std::array<JobTruth, kFinishedJobs> finished;
};
static_assert(std::is_trivially_copyable_v<CardState>);

// A state with what it needs to move: views, owned by the store. works[i] is slot i's job.
struct Card {
  CardState& state;
  const DeviceModel& device;
  std::array<Work*, kMaxJobs> works;
};

// A cold, idle, unlocked card.
void initialize(CardState& state, const DeviceModel& device, std::uint64_t seed, Instant now);
// Does all events up to and including `to`; going back is ignored.
void advance(Card& card, Instant to);

struct JobOptions {
  std::int64_t pid = 0;             // what compute_processes shows; 0: nothing
  std::uint64_t process_start = 0;  // 0: nobody watches whether the process lives
  std::int64_t iterations = 0;      // stop after as many; 0: endless
  std::uint64_t seed = 1;
};
// Names one attachment for good: a slot may be used again, a generation is not.
struct JobHandle {
  int slot = -1;
  std::uint64_t generation = 0;
};
// What a job may know of itself (not truth: its own iterations are no secret to it).
struct JobProgress {
  JobEnd state;
  std::int64_t iterations;
};

// Commands take effect at `card.state.horizon_ns`: advance first. kBusy when all slots are taken.
Result<JobHandle> attach_job(Card& card, const Work& work, const JobOptions& options);
Status detach_job(Card& card, JobHandle job, JobEnd why = JobEnd::kDetached);
Result<JobProgress> job_progress(const Card& card, JobHandle job);
// End times of iterations first..; at most the newest kIterationRing are there. Appends to `out`.
template <typename Out>
void iteration_ends(const JobSlot& slot, std::int64_t first, Out& out) {
  const std::int64_t count = slot.truth.iterations;
  for (std::int64_t i = first; i < count; ++i)
    out.push_back(
        instant_from_ns(slot.iteration_end_ns[static_cast<std::size_t>(i % kIterationRing)]));
}

// Index ranges into the device's tables. Memory: 0 is the highest clock, so min_index >= max_index
// in clock terms; pass (lowest, highest) by index as stored.
void command_sm_lock(Card& card, int min_index, int max_index);
void command_sm_reset(Card& card);
void command_memory_lock(Card& card, int lowest_clock_index, int highest_clock_index);
void command_memory_reset(Card& card);
void command_power_limit(Card& card, double limit_w);

// Closed form at any time from the last event on, without moving the state.
double energy_at(const Card& card, Instant t);

}  // namespace gpoeo::twin
