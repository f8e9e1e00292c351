// SPDX-License-Identifier: Apache-2.0
// gpoeo bench: policies side by side on simulated cards, on virtual time.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
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
  std::vector<std::string> policies{"gpoeo"};
  std::vector<std::string> limits{"5%"};
  std::string progress = "launches";
  std::string sensors = "fine";
  std::string objective = "energy";
  bench::ContestOptions contest;
  bool json = false;
  std::string html;
};

// One of a few words, each with its meaning.
template <typename T>
Result<T> one_of(std::string_view flag, const std::string& word,
                 std::initializer_list<std::pair<std::string_view, T>> meanings) {
  std::vector<std::string_view> words;
  for (const auto& [name, meaning] : meanings) {
    if (name == word) return meaning;
    words.push_back(name);
  }
  return make_error(ErrorKind::kInvalid,
                    fmt::format("{} {}: there are {}", flag, word, fmt::join(words, ", ")));
}

Status read_words(BenchOptions& options) {
  using bench::Progress;
  using bench::Sensors;
  bench::RunOptions& run = options.contest.run;
  GPOEO_TRY(run.progress, one_of<Progress>("--progress", options.progress,
                                           {{"launches", Progress::kLaunches},
                                            {"traces", Progress::kTraces},
                                            {"none", Progress::kNone}}));
  GPOEO_TRY(run.sensors, one_of<Sensors>("--sensors", options.sensors,
                                         {{"fine", Sensors::kFine}, {"device", Sensors::kDevice}}));
  GPOEO_TRY(run.objective, policy::parse_objective(options.objective));
  return {};
}

Status complete(BenchOptions& options) {
  options.contest.limits.clear();
  for (const std::string& text : options.limits) {
    GPOEO_TRY(const double limit, parse_slowdown_limit(text));
    options.contest.limits.push_back(limit);
  }
  GPOEO_TRY_STATUS(read_words(options));
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
  const bench::ContestOptions& c = o.contest;
  std::string text =
      o.suite.empty() ? "gpoeo bench --table " + o.table : "gpoeo bench --suite " + o.suite;
  if (o.device) text += " --device " + *o.device;
  if (!o.workloads.empty()) text += fmt::format(" --workload {}", fmt::join(o.workloads, ","));
  text += fmt::format(" --policy {} --progress {} --sensors {} --max-slowdown {} --objective {}",
                      fmt::join(o.policies, ","), o.progress, o.sensors, fmt::join(o.limits, ","),
                      o.objective);
  text +=
      fmt::format(" --job-seconds {:g} --seeds {} --seed {}", c.run.job_s, c.seeds, c.first_seed);
  if (c.run.noise_scale != 1) text += fmt::format(" --noise-scale {:g}", c.run.noise_scale);
  if (c.shift_by > 0) text += fmt::format(" --shift {}", c.shift_by);
  if (!c.model) text += " --no-model";
  if (!c.run.counters) text += " --no-counters";
  if (c.shift_back) text += " --shift-back";
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
  const bool all_failed =
      std::ranges::all_of(contest->rows, [](const bench::Row& row) { return !row.error.empty(); });
  if (all_failed) {
    return fail({.kind = ErrorKind::kInvalid, .text = contest->rows.front().error}, kExitUsage);
  }
  const bench::Shown shown{*suite, options.contest, *contest, command_of(options)};
  if (!options.html.empty()) {
    std::ofstream page(options.html);
    page << bench::as_html(shown) << std::flush;
    if (!page) return fail(errno_error("--html " + options.html, errno).error(), kExitOwnFailure);
  }
  fmt::print("{}", options.json ? bench::as_json(shown) : bench::as_text(shown));
  return kExitOk;
}

}  // namespace

void add_bench(CLI::App& root, Invocation& invocation) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App* verb = root.add_subcommand(
      "bench", "Judge policies side by side on simulated cards that replay measured tables");
  verb->footer(
      "Example: gpoeo bench --suite a100-measured --policy gpoeo,zeus,default --max-slowdown 5%");
  verb->add_option("--suite", options->suite,
                   fmt::format("One of {}", fmt::join(bench::suite_names(), ", ")));
  verb->add_option("--table", options->table, "A response table (CSV) instead of a suite");
  verb->add_option("--device", options->device, "Simulated card for --table (name or file)");
  verb->add_option("--workload", options->workloads, "Only these workloads")->delimiter(',');
  verb->add_option("--policy", options->policies, "Policies, side by side")->delimiter(',');
  verb->add_option("--max-slowdown", options->limits, "Limits: 5%, 0.05 or 1.05")->delimiter(',');
  verb->add_option("--progress", options->progress, "launches, traces or none");
  verb->add_option("--sensors", options->sensors,
                   "fine: power each 20 ms; device: as the card's file says");
  verb->add_option("--objective", options->objective, "energy, edp, ed2p or cost");
  verb->add_option("--eta", options->contest.run.cost_eta, "Share of energy in --objective cost")
      ->check(CLI::Range(0.0, 1.0));
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
  verb->add_flag("!--no-model", options->contest.model, "Without models");
  verb->add_flag("!--no-counters", options->contest.run.counters, "Without activity counters");
  verb->add_option("--shift", options->contest.shift_by,
                   "Halfway the work changes into another workload, the N-th next of the suite")
      ->check(CLI::Range(1, 10000));
  verb->add_flag("--shift-back", options->contest.shift_back,
                 "With --shift: in thirds, and the last is the first work again");
  verb->add_option("--html", options->html, "Write a page with the curves and the choices");
  verb->add_flag("--json", options->json, "Print one JSON object");
  verb->callback(
      [options, &invocation] { invocation.action = [options] { return run_bench(*options); }; });
}

}  // namespace gpoeo::app
