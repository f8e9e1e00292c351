// SPDX-License-Identifier: Apache-2.0
// gpoeo bench: policies side by side on simulated cards, on virtual time.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "bench/contest.h"
#include "bench/render.h"
#include "verb.h"

namespace gpoeo::app {
namespace {

struct BenchOptions {
  std::string suite;
  std::string table;
  std::optional<std::string> device;
  std::vector<std::string> workloads;
  std::vector<std::string> policies{"search"};
  std::vector<std::string> limits{"5%"};
  std::string progress = "launches";
  std::string objective = "energy";
  bench::ContestOptions contest;
  bool json = false;
  std::string html;
};

Status read_progress(BenchOptions& options) {
  if (options.progress == "launches") return {};
  return make_error(ErrorKind::kInvalid,
                    fmt::format("--progress {}: there is launches", options.progress));
}

Status complete(BenchOptions& options) {
  options.contest.limits.clear();
  for (const std::string& text : options.limits) {
    GPOEO_TRY(const double limit, parse_slowdown_limit(text));
    options.contest.limits.push_back(limit);
  }
  GPOEO_TRY_STATUS(read_progress(options));
  if (options.suite.empty() == options.table.empty()) {
    return make_error(ErrorKind::kInvalid, "give either --suite NAME or --table FILE");
  }
  return {};
}

Result<bench::Suite> load(const BenchOptions& options) {
  if (!options.suite.empty()) return bench::load_suite(options.suite);
  return bench::suite_of_table(options.table, options.device);
}

// What makes the same figures again.
std::string command_of(const BenchOptions& o) {
  std::string text = fmt::format(
      "gpoeo bench {} --policy {} --progress {} --max-slowdown {} --job-seconds {:g} --seeds {}",
      o.suite.empty() ? "--table " + o.table : "--suite " + o.suite, fmt::join(o.policies, ","),
      o.progress, fmt::join(o.limits, ","), o.contest.run.job_s, o.contest.seeds);
  return text;
}

int run_bench(BenchOptions& options) {
  if (Status done = complete(options); !done) return fail(done.error(), kExitUsage);
  auto suite = load(options);
  if (!suite) return fail(suite.error(), kExitUsage);
  if (Status kept = bench::keep_only(*suite, options.workloads); !kept) {
    return fail(kept.error(), kExitUsage);
  }
  auto policies = bench::contestants(options.policies);
  if (!policies) return fail(policies.error(), kExitUsage);
  const auto contest = bench::run_contest(*suite, std::move(*policies), options.contest);
  if (!contest) return fail(contest.error(), kExitOwnFailure);
  const bench::Shown shown{*suite, options.contest, *contest, command_of(options)};
  fmt::print("{}", options.json ? bench::as_json(shown) : bench::as_text(shown));
  return kExitOk;
}

}  // namespace

void add_bench(CLI::App& root, Invocation& invocation) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App* verb = root.add_subcommand(
      "bench", "Judge policies side by side on simulated cards that replay measured tables");
  verb->footer(
      "Example: gpoeo bench --suite a100-measured --policy search,default --max-slowdown 5%");
  verb->add_option("--suite", options->suite,
                   fmt::format("One of {}", fmt::join(bench::suite_names(), ", ")));
  verb->add_option("--table", options->table, "A response table (CSV) instead of a suite");
  verb->add_option("--device", options->device, "Simulated card for --table (name or file)");
  verb->add_option("--workload", options->workloads, "Only these workloads")->delimiter(',');
  verb->add_option("--policy", options->policies, "Policies, side by side")->delimiter(',');
  verb->add_option("--max-slowdown", options->limits, "Limits: 5%, 0.05 or 1.05")->delimiter(',');
  verb->add_option("--progress", options->progress, "launches");
  verb->add_option("--job-seconds", options->contest.run.job_s, "Length at default clocks")
      ->check(CLI::Range(10.0, 1e6));
  verb->add_option("--seeds", options->contest.seeds, "Runs of each")->check(CLI::Range(1, 1000));
  verb->add_option("--seed", options->contest.first_seed, "The first seed");
  verb->add_option("--jobs", options->contest.threads, "Threads")->check(CLI::Range(1, 256));
  verb->add_option("--noise-scale", options->contest.run.noise_scale, "Times the usual noise")
      ->check(CLI::Range(0.0, 20.0));
  verb->add_option("--jitter", options->contest.run.jitter_cv, "Of an iteration's time")
      ->check(CLI::Range(0.0, 1.0));
  verb->add_option("--drift", options->contest.run.drift_sigma, "Of time and of power")
      ->check(CLI::Range(0.0, 0.2));
  verb->add_flag("--json", options->json, "Print one JSON object");
  verb->callback(
      [options, &invocation] { invocation.action = [options] { return run_bench(*options); }; });
}

}  // namespace gpoeo::app
