// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "bench/render.h"

namespace gpoeo::bench {
namespace {

std::string seconds(const std::optional<double>& s) {
  return s ? fmt::format("{:.0f} s", *s) : "-";
}

void add_workloads(const Shown& shown, std::size_t limit, std::string& out) {
  out += fmt::format("{:<24} {:>8}", "net saving, %", "oracle");
  for (const Contestant& c : shown.contest.contestants) out += fmt::format(" {:>12.12}", c.name);
  out += "\n";
  const std::size_t contestants = shown.contest.contestants.size();
  std::vector<double> net(shown.suite.subjects.size() * contestants);
  std::vector<bool> violated(net.size());
  std::vector<double> best(shown.suite.subjects.size());
  for (const Row& row : shown.contest.rows) {
    if (row.limit != limit || !row.error.empty()) continue;
    const std::size_t cell = row.subject * contestants + row.contestant;
    net[cell] += 100 * row.run.net_saving / shown.options.seeds;
    if (is_violation(row.run.steady_slowdown, shown.options.limits[limit])) violated[cell] = true;
    best[row.subject] = 100 * row.oracle.saving();
  }
  for (std::size_t subject = 0; subject < shown.suite.subjects.size(); ++subject) {
    out += fmt::format("{:<24.24} {:>8.2f}", shown.suite.subjects[subject].name, best[subject]);
    for (std::size_t c = 0; c < contestants; ++c) {
      const std::size_t cell = subject * contestants + c;
      out += fmt::format(" {:>11.2f}{}", net[cell], violated[cell] ? "!" : " ");
    }
    out += "\n";
  }
}

}  // namespace

std::string as_text(const Shown& shown) {
  const ContestOptions& o = shown.options;
  std::string out =
      fmt::format("{} ({}): {} workloads, jobs of {:.0f} s, seeds {}..{}, noise x{:g}; simulated\n",
                  shown.suite.name, shown.suite.origin, shown.suite.subjects.size(), o.run.job_s,
                  o.first_seed, o.first_seed + o.seeds - 1, o.run.noise_scale);
  for (std::size_t limit = 0; limit < o.limits.size(); ++limit) {
    out += fmt::format("\nlimit {:g} %\n", 100 * o.limits[limit]);
    out += fmt::format("{:<16} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>6}\n",
                       "policy", "net", "/oracle", "slower", "steady", "/oracle", "slower", "over",
                       "worst", "hold", "p90", "writes");
    for (const Summary& s : shown.contest.summaries) {
      if (s.limit != limit) continue;
      out += fmt::format(
          "{:<16.16} {:>6.2f}% {:>7.3f} {:>6.2f}% {:>6.2f}% {:>7.3f} {:>6.2f}% {:>6.1f}% {:>6.2f}% "
          "{:>7} {:>7} {:>6.0f}{}\n",
          shown.contest.contestants[s.contestant].name, 100 * s.net_saving, s.net_ratio,
          100 * s.net_slowdown, 100 * s.steady_saving, s.steady_ratio, 100 * s.steady_slowdown,
          100 * s.violations, 100 * s.worst_steady_slowdown, seconds(s.hold_median_s),
          seconds(s.hold_p90_s), s.writes_median,
          s.failed > 0 ? fmt::format("  {} runs failed", s.failed) : "");
    }
    out += "\n";
    add_workloads(shown, limit, out);
  }
  out +=
      "\nnet: from the job's start, searching included; steady: the truth at the held setting;\n"
      "over: share of runs whose steady slow-down is over the limit by more than 0.5 points;\n"
      "!: some seed of this workload is over; /oracle: over the mean of the best setting.\n";
  return out;
}

}  // namespace gpoeo::bench
