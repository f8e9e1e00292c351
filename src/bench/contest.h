// SPDX-License-Identifier: Apache-2.0
// Every workload of a suite under every policy, limit and seed, side by side, and the sums.
//
// Thread rule: run_contest() starts `threads` threads of its own. The result does not depend on
// how many.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/run.h"
#include "bench/suite.h"
#include "bench/truth.h"
#include "policy/policy.h"

namespace gpoeo::bench {

struct Contestant {
  std::string name;  // as the user wrote it
  std::shared_ptr<const policy::Policy> policy;
};
// By policy::make_policy; kInvalid names what is wrong.
Result<std::vector<Contestant>> contestants(const std::vector<std::string>& names);

struct ContestOptions {
  RunOptions run;  // its seed and limit are set for each run
  std::vector<double> limits{0.05};
  std::uint64_t first_seed = 1;
  unsigned seeds = 5;
  unsigned threads = 1;
  bool model = true;  // leave-one-out models where the suite has tables to train them on
  // The work changes halfway into the suite's next workload but `shift_by` - 1, or, with
  // `shift_back`, in thirds and into the first again; 0: it stays.
  unsigned shift_by = 0;
  bool shift_back = false;
};

struct Row {
  std::size_t subject = 0, contestant = 0, limit = 0;
  std::uint64_t seed = 0;
  Oracle oracle{};           // of the work at the end
  double oracle_saving = 0;  // of the whole job, each part at its own best setting
  RunResult run{};
  std::string error{};  // not empty: the run failed and `run` means nothing
};

// Means over the runs of one contestant at one limit.
struct Summary {
  std::size_t contestant = 0, limit = 0;
  std::size_t runs = 0, failed = 0;
  double oracle_saving = 0;
  double net_saving = 0, net_slowdown = 0, steady_saving = 0, steady_slowdown = 0;
  // Mean saving over the oracle's mean saving; 0 when the oracle saves nothing.
  double net_ratio = 0, steady_ratio = 0;
  double net_ratio_spread = 0;  // standard deviation over seeds
  // Mean over workloads of their own ratio, where the oracle saves 1 % or more.
  double net_ratio_each = 0, steady_ratio_each = 0;
  double violations = 0;  // share of runs with a steady slow-down over limit + 0.5 points
  double worst_steady_slowdown = 0, worst_net_saving = 0;
  std::optional<double> hold_median_s{}, hold_p90_s{};
  double writes_median = 0;
  std::vector<std::optional<double>> resettle_median_s{};  // after each change of work
};

struct Contest {
  std::vector<Contestant> contestants;
  std::vector<Truth> truths;  // by subject
  std::vector<Row> rows;      // by limit, subject, contestant, seed
  std::vector<Summary> summaries;
  double simulated_s = 0;
};

Result<Contest> run_contest(const Suite& suite, std::vector<Contestant> contestants,
                            const ContestOptions& options);

// Slow-down over the limit by more than half a point (DESIGN section 11).
bool is_violation(double steady_slowdown, double max_slowdown);
std::vector<Summary> summarise(const std::vector<Row>& rows, std::size_t contestants,
                               const std::vector<double>& limits);

}  // namespace gpoeo::bench
