// SPDX-License-Identifier: Apache-2.0
// What one `gpoeo run` has to say at its end: plain numbers and strings. The control loop fills it,
// render.h shows it. Absent = not measured; nothing here is ever guessed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/activity.h"

namespace gpoeo::report {

// A measured number and its standard error.
struct Figure {
  double value = 0;
  double error = 0;
};

struct GpuSection {
  unsigned index = 0;
  std::string uuid, name;
  std::optional<double> energy_j{};  // from the job's first reading to its last
  std::optional<double> mean_power_w{};
  std::string energy_source{};  // "power samples", "energy counter", ...
  std::string energy_source_reason{};
  std::vector<std::string> unavailable{};  // readings this card or driver does not have
  std::string clocks_found{};     // "not locked", "210..1200 MHz", "unknown (driver cannot tell)"
  std::string clocks_restored{};  // empty: never touched
  bool restore_failed = false;
  std::uint64_t power_gaps = 0;
  double power_gap_s = 0;
};

// Per iteration at default clocks.
struct BaselineSection {
  Figure time_s;
  Figure energy_j;
  unsigned windows = 0;
  double seconds = 0;  // measured in all
};

// Fractions: 0.2 = 20 %. Net counts everything from the first counted iteration to the last,
// searching included; held counts the windows at the clock that was held last.
struct SavingSection {
  Figure net_saving, net_slowdown;
  std::optional<Figure> held_saving, held_slowdown;
};

// What was found out about the job's work at default clocks, once for each kind of work.
struct ProfileSection {
  std::string source;  // "GPM", "CUPTI PM sampling", "twin job", "none"
  std::string why;     // why from no better source; may be empty
  Activity activity{};
  double iterations = 0, seconds = 0;  // that the counters cover
  double remainder = 0;                // largest relative error as they are not quite whole
  bool recalled = false;               // read earlier, for the same work
  // Of an iteration, of one GPU; absent when the job ended before its baseline was measured.
  std::optional<double> time_s{}, power_w{};
  std::optional<double> power_limit_w{}, gpu_utilization{}, memory_utilization{}, sm_mhz{},
      memory_mhz{}, host_share{};
};

// What the simulator itself knows; never seen by the control loop.
struct TruthSection {
  double net_saving = 0, net_slowdown = 0;
  std::optional<double> held_saving, held_slowdown;
  double energy_j = 0;
  std::uint64_t iterations = 0;
};

// One decision of the policy, with the time it was taken.
struct DecisionLine {
  double at_s = 0;
  std::string purpose, setting, why;
};

struct Session {
  std::string gpoeo_version, driver_version;
  std::string command;
  bool simulated = false;
  std::string policy;
  double max_slowdown = 0;
  std::string measure_only_reason;  // empty: clocks could be set
  int exit_code = 0;

  double duration_s = 0;  // of the job, on the session's clock
  std::vector<GpuSection> gpus;
  std::string progress_source;
  bool by_traces = false;        // no iteration was counted: power traces were compared instead
  std::uint64_t iterations = 0;  // from the job's start, restated when the unit became known late
  std::string
      launch_log;  // how it went: "running to the end", "stopped: ...", "never started: ..."
  std::optional<BaselineSection> baseline;
  std::vector<ProfileSection> profiles;
  std::optional<SavingSection> saving;
  std::string no_saving_reason;  // why `saving` is absent

  // What was held last; absent = as the driver runs it by default.
  std::optional<double> held_sm_mhz;
  std::optional<double> held_memory_mhz;
  std::optional<double> held_power_limit_w;
  std::optional<double> time_to_hold_s;
  double exploring_s = 0;
  unsigned clock_writes = 0;
  std::vector<DecisionLine> decisions;
  std::vector<std::string> notes;
  std::optional<TruthSection> truth;
};

}  // namespace gpoeo::report
