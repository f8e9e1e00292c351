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
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "twin/device_model.h"
#include "twin/random.h"
#include "twin/work.h"

namespace gpoeo::twin {

inline constexpr int kMaxJobs = 4;
inline constexpr int kSampleRing = 256;
inline constexpr int kIterationRing = 16384;
inline constexpr int kFinishedJobs = 8;
inline constexpr std::int64_t kNever = INT64_MAX;

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

// A sensor that shows the mean power over a window: true energies and times of its last ticks (or,
// for a window shorter than the period, of the window's begin).
struct WindowedPower {
  std::int64_t next_ns;  // of the next thing to do
  std::int64_t tick_ns;  // of the next tick
  std::uint64_t ticks;
  std::array<double, 64> energy_j;
  std::array<std::int64_t, 64> time_ns;
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
  double shared_at_start_j;
  Random random;
  JobTruth truth;
};

// Of iteration i of a slot's job, at i % kIterationRing: when it ended and which variant it was.
// Beside the state, not in it: entries up to the state's count hold, and one that is written again
// after a killed holder gets the same value.
struct IterationLog {
  std::array<std::int64_t, kIterationRing> end_ns;
  std::array<std::uint8_t, kIterationRing> variant;
};

// A clock request on its way into force: `step` 0 none, 1 waiting for the latency, 2 settling.
struct ClockCommand {
  std::int32_t step;
  std::int32_t low, high;
  std::int32_t reserved;
  std::int64_t due_ns;
};

struct CardState {
  std::uint64_t seed;
  std::int64_t start_ns;
  std::int64_t t_ns;        // of the last event; everything below holds then
  std::int64_t horizon_ns;  // events up to here are done

  // Clocks in force, as indices into the device's tables (memory 0 is the highest clock).
  std::int32_t sm, memory;
  // Locks as asked for, and the bounds in force after latency and settling.
  std::int32_t sm_locked, memory_locked;  // flags
  std::int32_t sm_low, sm_high, memory_low, memory_high;
  std::int32_t force_sm_low, force_sm_high, force_memory_low, force_memory_high;
  ClockCommand sm_command, memory_command;
  std::int32_t governor_steps;  // SM clock steps taken off by the power cap
  std::int32_t capped;          // the cap is what binds
  std::int64_t governor_next_ns, governor_mark_ns;
  double governor_mark_j, governor_filtered_w;
  double power_limit_w;
  std::int64_t idle_due_ns;  // when clocks fall; kNever while busy or idle already
  std::int32_t idle;         // fallen to idle clocks
  std::int32_t lost;
  std::uint64_t clock_writes;
  std::int32_t write_failure_in, write_failure_kind;

  // Physics at t_ns.
  double temperature_c;
  double work_w, mean_work_w;  // present P_work; its mean, which sets T_ss
  double energy_j;
  double shared_energy_j;  // integral of power over the number of running jobs
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

// A state with what it needs to move: views, owned by the store. works[i] is slot i's job, logs[i]
// its iterations.
struct Card {
  CardState& state;
  const DeviceModel& device;
  std::array<Work*, kMaxJobs> works;
  std::array<IterationLog*, kMaxJobs> logs;
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
// End times of iterations `first` and later; only the newest kIterationRing are kept, so ask often
// enough (kInvalid when some asked for are gone).
struct IterationEnd {
  Instant time;
  int variant;  // of Work
};
Result<std::vector<IterationEnd>> iteration_ends(const Card& card, JobHandle job,
                                                 std::int64_t first);

// Bounds are indices into the device's tables with low <= high, so for memory `low` is the highest
// clock allowed.
void command_sm_lock(Card& card, int low, int high);
void command_sm_reset(Card& card);
void command_memory_lock(Card& card, int low, int high);
void command_memory_reset(Card& card);
void command_power_limit(Card& card, double limit_w);

// Closed form at any time from the last event on, without moving the state.
double energy_at(const Card& card, Instant t);
double power_at(const Card& card, Instant t);
double temperature_at(const Card& card, Instant t);

}  // namespace gpoeo::twin
