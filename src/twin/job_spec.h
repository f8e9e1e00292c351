// SPDX-License-Identifier: Apache-2.0
// What a simulated job does: iterations made of phases, with an analytic or a measured response to
// clocks. From TOML (data/twin/jobs/*.toml or anybody's own; format in docs/twin.md) or straight
// from a workload of a response table.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "response/response_curve.h"
#include "twin/work.h"

namespace gpoeo::twin {

// Time at (f_sm, f_mem), from shares of the phase's kernel time at default clocks:
//   c = compute * f0/f, m = memory * m0/m', kernel = overlap * max(c, m) + (1 - overlap) * (c + m)
// plus fixed (neither clock matters), all scaled so that the sum is 1 at default clocks.
struct AnalyticResponse {
  double compute = 1.0;
  double memory = 0.0;
  double fixed = 0.0;
  double overlap = 1.0;
  // Share of the SMs' and the memory's peak dynamic power at default clocks.
  double sm_activity = 0.5;
  double memory_activity = 0.0;
  // Share of the SMs with a warp on them: small grids leave most of them empty while they draw and
  // wait. Absent: 0.3 more than sm_activity.
  std::optional<double> sm_active{};
  // Counters at default clocks, 0..1.
  double tensor = 0.0, fp64 = 0.0, fp32 = 0.0, fp16 = 0.0, occupancy = 0.3;
  double pcie_tx_bytes_per_s = 0.0, pcie_rx_bytes_per_s = 0.0;
};

struct PhaseSpec {
  std::string name;
  PhaseKind kind = PhaseKind::kKernel;
  double share = 1.0;  // of the iteration at default clocks; for `every` > 1 in iterations
  int every = 1;
  int launches = 1;
  // Measured jobs: power and activity of this phase relative to the iteration's mean.
  double level = 1.0;
  AnalyticResponse response;
};

struct VariantSpec {
  std::string name;
  double weight = 1.0;
  double length = 1.0;  // of its iterations, relative to iteration_s
  std::vector<PhaseSpec> phases;
  int repeat_first = 0, repeat_count = 0, repeats = 1;
};

struct StageSpec {
  std::int64_t iterations = 0;  // 0: for good
  double length = 1.0;
  std::vector<VariantSpec> variants;
  // Measured: relative time and mean power at each clock are this table's, and the phases only
  // shape power within the iteration. Null: each phase's own analytic response.
  std::shared_ptr<const response::WorkloadCurves> measured;
};

struct JobSpec {
  std::string name;
  double iteration_s = 0.25;  // one iteration at default clocks
  std::vector<StageSpec> stages;
  bool loop_stages = false;
  std::vector<std::pair<double, double>> lengths;  // (relative length, weight)
  double jitter_cv = 0.02;
  double drift_sigma = 0.003;
  double drift_tau_s = 60.0;
  double power_drift_sigma = 0.003;
  std::uint64_t memory_bytes = std::uint64_t{8} << 30;
};

// Takes all chance out: no jitter, no drift.
void make_steady(JobSpec& spec);

// One stage and one variant of a training-like shape (host, forward, backward, update) around a
// measured response, as `name`.
JobSpec measured_job(std::string name, std::shared_ptr<const response::WorkloadCurves> measured,
                     double iteration_s);

class TomlFile;
// The job whose keys begin with `at` ("" or "jobs[3]."); what is wrong stays in the file (see
// TomlFile::finish).
JobSpec read_job(TomlFile& file, const std::string& at, std::string_view otherwise_named);
// kInvalid in one line that names file, key and cure.
Result<JobSpec> load_job(const std::filesystem::path& file);

}  // namespace gpoeo::twin
