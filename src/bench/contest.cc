// SPDX-License-Identifier: Apache-2.0
#include "bench/contest.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

#include "bench/scratch_folder.h"

namespace gpoeo::bench {
namespace {

constexpr double kViolationMargin = 0.005;
constexpr double kWorthSaving = 0.01;

double quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  const double place = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (place - static_cast<double>(low)) * (values[high] - values[low]);
}

// Sums over some rows.
struct Sums {
  double n = 0, net = 0, steady = 0, oracle = 0;
  void add(const Row& row) {
    n += 1;
    net += row.run.net_saving;
    steady += row.run.steady_saving;
    oracle += row.oracle_saving;
  }
};

void add_ratios(const std::map<std::size_t, Sums>& by_subject,
                const std::map<std::uint64_t, Sums>& by_seed, Summary& s) {
  double worth = 0;
  for (const auto& [subject, sums] : by_subject) {
    if (sums.oracle < kWorthSaving * sums.n) continue;
    worth += 1;
    s.net_ratio_each += sums.net / sums.oracle;
    s.steady_ratio_each += sums.steady / sums.oracle;
  }
  if (worth > 0) {
    s.net_ratio_each /= worth;
    s.steady_ratio_each /= worth;
  }
  if (s.oracle_saving <= 0) return;
  s.net_ratio = s.net_saving / s.oracle_saving;
  s.steady_ratio = s.steady_saving / s.oracle_saving;
  if (by_seed.size() < 2) return;
  double squares = 0;
  for (const auto& [seed, sums] : by_seed) {
    const double off = sums.net / sums.oracle - s.net_ratio;
    squares += off * off;
  }
  s.net_ratio_spread = std::sqrt(squares / static_cast<double>(by_seed.size() - 1));
}

Summary summary_of(const std::vector<Row>& rows, std::size_t contestant, std::size_t limit,
                   double max_slowdown) {
  Summary s{.contestant = contestant, .limit = limit};
  std::map<std::size_t, Sums> by_subject;
  std::map<std::uint64_t, Sums> by_seed;
  std::vector<double> holds, writes;
  std::vector<std::vector<double>> resettled;
  s.worst_net_saving = 1;
  for (const Row& row : rows) {
    if (row.contestant != contestant || row.limit != limit) continue;
    if (!row.error.empty()) {
      ++s.failed;
      continue;
    }
    ++s.runs;
    by_subject[row.subject].add(row);
    by_seed[row.seed].add(row);
    s.oracle_saving += row.oracle_saving;
    s.net_saving += row.run.net_saving;
    s.net_slowdown += row.run.net_slowdown;
    s.steady_saving += row.run.steady_saving;
    s.steady_slowdown += row.run.steady_slowdown;
    s.violations += is_violation(row.run.steady_slowdown, max_slowdown) ? 1 : 0;
    s.worst_steady_slowdown = std::max(s.worst_steady_slowdown, row.run.steady_slowdown);
    s.worst_net_saving = std::min(s.worst_net_saving, row.run.net_saving);
    if (row.run.time_to_hold_s) holds.push_back(*row.run.time_to_hold_s);
    writes.push_back(row.run.clock_writes);
    resettled.resize(std::max(resettled.size(), row.run.resettled_s.size()));
    for (std::size_t i = 0; i < row.run.resettled_s.size(); ++i) {
      // One that was never noticed took for ever.
      resettled[i].push_back(row.run.resettled_s[i].value_or(std::numeric_limits<double>::max()));
    }
  }
  if (s.runs == 0) return s;
  const auto n = static_cast<double>(s.runs);
  for (double* mean : {&s.oracle_saving, &s.net_saving, &s.net_slowdown, &s.steady_saving,
                       &s.steady_slowdown, &s.violations}) {
    *mean /= n;
  }
  add_ratios(by_subject, by_seed, s);
  if (!holds.empty()) {
    s.hold_median_s = quantile(holds, 0.5);
    s.hold_p90_s = quantile(holds, 0.9);
  }
  s.writes_median = quantile(writes, 0.5);
  for (auto& times : resettled) {
    const double median = quantile(std::move(times), 0.5);
    s.resettle_median_s.push_back(median < 1e9 ? std::optional(median) : std::nullopt);
  }
  return s;
}

// The workloads that a run goes through, by index; all on one device.
std::vector<std::size_t> legs_of(const Suite& suite, const ContestOptions& options,
                                 std::size_t subject) {
  std::vector<std::size_t> legs{subject};
  if (options.shift_by == 0) return legs;
  std::size_t other = (subject + options.shift_by) % suite.subjects.size();
  while (suite.subjects[other].device != suite.subjects[subject].device) {
    other = (other + 1) % suite.subjects.size();
  }
  legs.push_back(other);
  if (options.shift_back) legs.push_back(subject);
  return legs;
}

// All legs take as long at default clocks, so their energies there are as their powers.
void set_oracle(const Suite& suite, const Contest& contest, const ContestOptions& options,
                Row& row) {
  double spent_w = 0, default_w = 0;
  for (const std::size_t leg : legs_of(suite, options, row.subject)) {
    const Truth& truth = contest.truths[leg];
    const auto& device = suite.devices.at(suite.subjects[leg].device);
    row.oracle = oracle(truth.points(), options.limits[row.limit], options.run.objective,
                        options.run.cost_eta, device.limit_max_w / truth.default_power_w());
    default_w += truth.default_power_w();
    spent_w += truth.default_power_w() * row.oracle.response.energy;
  }
  row.oracle_saving = 1 - spent_w / default_w;
}

}  // namespace

bool is_violation(double steady_slowdown, double max_slowdown) {
  return steady_slowdown > max_slowdown + kViolationMargin;
}

std::vector<Summary> summarise(const std::vector<Row>& rows, std::size_t contestants,
                               const std::vector<double>& limits) {
  std::vector<Summary> summaries;
  for (std::size_t limit = 0; limit < limits.size(); ++limit) {
    for (std::size_t c = 0; c < contestants; ++c) {
      summaries.push_back(summary_of(rows, c, limit, limits[limit]));
    }
  }
  return summaries;
}

Result<std::vector<Contestant>> contestants(const std::vector<std::string>& names) {
  std::vector<Contestant> all;
  for (const std::string& name : names) {
    GPOEO_TRY(auto policy, policy::make_policy(name));
    all.push_back({.name = name, .policy = std::move(policy)});
  }
  if (all.empty()) {
    return make_error(ErrorKind::kInvalid, "no policy to run; name some with --policy");
  }
  return all;
}

Result<Contest> run_contest(const Suite& suite, std::vector<Contestant> contestants,
                            const ContestOptions& options) {
  GPOEO_TRY(const auto scratch, ScratchFolder::create());
  Contest contest{.contestants = std::move(contestants),
                  .truths = {},
                  .rows = {},
                  .summaries = {},
                  .simulated_s = 0};
  Priors priors;
  if (options.model) {
    GPOEO_TRY(priors, Priors::train(suite));
  }
  for (const Subject& subject : suite.subjects) {
    GPOEO_TRY(auto truth, Truth::of(subject.job, suite.devices.at(subject.device)));
    contest.truths.push_back(std::move(truth));
  }
  for (std::size_t limit = 0; limit < options.limits.size(); ++limit) {
    for (std::size_t subject = 0; subject < suite.subjects.size(); ++subject) {
      Row row;
      row.subject = subject;
      row.limit = limit;
      set_oracle(suite, contest, options, row);
      for (std::size_t c = 0; c < contest.contestants.size(); ++c) {
        for (unsigned i = 0; i < options.seeds; ++i) {
          row.contestant = c;
          row.seed = options.first_seed + i;
          contest.rows.push_back(row);
        }
      }
    }
  }
  // Each thread takes the next row and writes only there, so that the order is the same for any
  // number of them.
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < contest.rows.size(); i = next++) {
      Row& row = contest.rows[i];
      const Subject& subject = suite.subjects[row.subject];
      RunOptions run = options.run;
      run.seed = row.seed;
      if (options.model) run.predict = priors.of(suite, subject);
      run.max_slowdown = options.limits[row.limit];
      run.state_dir = scratch->path() / std::to_string(i);
      std::vector<Leg> legs;
      for (const std::size_t leg : legs_of(suite, options, row.subject)) {
        legs.push_back({&suite.subjects[leg], &contest.truths[leg]});
      }
      auto result = run_one(legs, suite.devices[subject.device],
                            *contest.contestants[row.contestant].policy, run);
      if (result) {
        row.run = std::move(*result);
      } else {
        row.error = result.error().text;
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 1; i < options.threads; ++i) threads.emplace_back(work);
    work();
  }
  for (const Row& row : contest.rows) contest.simulated_s += row.run.simulated_s;
  contest.summaries = summarise(contest.rows, contest.contestants.size(), options.limits);
  return contest;
}

}  // namespace gpoeo::bench
