// SPDX-License-Identifier: Apache-2.0
// gpoeo train TABLES... -o MODEL: a predictor from response tables; with --evaluate, how well such
// predictors do on workloads that they never saw, beside the baselines.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "model/evaluation.h"
#include "model/trainer.h"
#include "model_device.h"
#include "train_report.h"
#include "verb.h"

namespace gpoeo::app {
namespace {

struct TrainVerbOptions {
  std::vector<std::string> tables, also, judge;
  std::string device, output, made_for, hold_out = "both", max_slowdown = "5%";
  int rounds = 200;
  bool evaluate = false, json = false, quiet = false;
};

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

Result<model::Dataset> read_tables(const std::vector<std::string>& tables,
                                   const std::string& device) {
  model::Dataset dataset;
  for (const std::string& table : tables)
    GPOEO_TRY_STATUS(add_table_argument(dataset, table, device));
  return dataset;
}

// The one card that all examples are of, or "any".
std::string made_for(const TrainVerbOptions& options, const model::Dataset& dataset) {
  if (!options.made_for.empty()) return options.made_for;
  std::set<std::string> names;
  for (const model::Example& e : dataset.examples) names.insert(e.device.name);
  return names.size() == 1 ? *names.begin() : "any";
}

model::TrainOptions train_options(const TrainVerbOptions& options) {
  model::TrainOptions train;
  train.gpoeo_version = GPOEO_VERSION;
  train.rounds = options.rounds;
  train.trees = options.rounds > 0;
  return train;
}

Status evaluate(const TrainVerbOptions& options, const model::Dataset& measured,
                const model::Dataset& also) {
  GPOEO_TRY(const double limit, parse_slowdown_limit(options.max_slowdown));
  std::vector<model::HoldOut> ways;
  if (options.hold_out != "family") ways.push_back(model::HoldOut::kWorkload);
  if (options.hold_out != "workload") ways.push_back(model::HoldOut::kFamily);
  std::vector<EvaluationReport> reports;
  for (const model::HoldOut way : ways) {
    model::EvaluationOptions how;
    how.hold_out = way;
    how.max_slowdown = limit;
    how.train = train_options(options);
    if (!options.quiet) how.progress = [](const std::string& line) { log::info("{}", line); };
    EvaluationReport report{
        measured.sources.empty() ? "" : measured.sources.front(), way, limit, {}};
    GPOEO_TRY(report.methods, model::evaluate(measured, {}, how));
    how.baselines = false;
    how.train.trees = false;
    GPOEO_TRY(auto bare, model::evaluate(measured, {}, how));
    bare.front().method = "gpoeo without trees";
    report.methods.insert(report.methods.begin() + 1, std::move(bare.front()));
    if (!also.examples.empty()) {
      how.train.trees = true;
      GPOEO_TRY(auto more, model::evaluate(measured, also, how));
      more.front().method = "gpoeo, --also tables too";
      report.methods.insert(report.methods.begin() + 2, std::move(more.front()));
    }
    if (!options.json) print_text(report, measured);
    reports.push_back(std::move(report));
  }
  if (options.json) print_json(reports);
  return {};
}

// Times on the machine at hand, for docs/models.md.
void report_speed(const std::string& path, const model::Dataset& dataset) {
  const auto load_start = std::chrono::steady_clock::now();
  const auto loaded = model::Predictor::load(path);
  const double load_ms = milliseconds_since(load_start);
  if (!loaded) return;
  const model::Example& example = dataset.examples.front();
  std::vector<model::MemoryClock> clocks;
  std::size_t pairs = 0;
  for (const model::Line& line : example.lines) {
    model::MemoryClock& clock = clocks.emplace_back();
    if (example.device.memory_mhz)
      clock.memory_mhz = *example.device.memory_mhz / line.memory_slowdown;
    for (const double x : line.sm_slowdown) clock.sm_mhz.push_back(example.device.sm_mhz / x);
    pairs += line.sm_slowdown.size();
  }
  constexpr int kRepeats = 100;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kRepeats; ++i) (void)loaded->predict(example.device, example.profile, clocks);
  log::info("loaded in {:.1f} ms; {} clock pairs predicted in {:.3f} ms", load_ms, pairs,
            milliseconds_since(start) / kRepeats);
}

Status run(const TrainVerbOptions& options) {
  GPOEO_TRY(const model::Dataset measured, read_tables(options.tables, options.device));
  GPOEO_TRY(const model::Dataset also, read_tables(options.also, options.device));
  if (measured.examples.empty())
    return make_error(ErrorKind::kInvalid,
                      "no workload was swept over SM clocks: give a table with sm_clock_mhz");
  if (options.evaluate) GPOEO_TRY_STATUS(evaluate(options, measured, also));
  if (options.output.empty()) return {};
  model::Dataset all = measured;
  all.examples.insert(all.examples.end(), also.examples.begin(), also.examples.end());
  all.sources.insert(all.sources.end(), also.sources.begin(), also.sources.end());
  model::TrainOptions how = train_options(options);
  how.device = made_for(options, all);
  if (!options.quiet) how.progress = [](const std::string& line) { log::info("{}", line); };
  const auto start = std::chrono::steady_clock::now();
  GPOEO_TRY(const model::Predictor predictor, model::train(all, how));
  GPOEO_TRY_STATUS(write_output_file(options.output, predictor.to_text()));
  if (!options.judge.empty()) {
    GPOEO_TRY(const double limit, parse_slowdown_limit(options.max_slowdown));
    GPOEO_TRY(const model::Dataset on, read_tables(options.judge, options.device));
    model::EvaluationOptions judging;
    judging.max_slowdown = limit;
    EvaluationReport report{on.sources.front(), std::nullopt, limit, {}};
    report.methods.push_back(model::judge(predictor, on, judging));
    options.json ? print_json({report}) : print_text(report, on);
  }
  if (!options.quiet) {
    log::info("{}: for {}, {} workloads, trained in {:.1f} s", options.output,
              predictor.facts().device, predictor.facts().workloads,
              milliseconds_since(start) / 1000);
    report_speed(options.output, all);
  }
  return {};
}

int run_train(const TrainVerbOptions& options) {
  if (options.output.empty() && !options.evaluate)
    return fail({ErrorKind::kInvalid, "nothing to do: give -o MODEL, --evaluate or both"},
                kExitUsage);
  const Status done = run(options);
  return done ? kExitOk : fail(done.error(), kExitUsage);
}

}  // namespace

void add_train(CLI::App& root, Invocation& invocation) {
  const auto options = std::make_shared<TrainVerbOptions>();
  CLI::App* verb = root.add_subcommand(
      "train", "Train a predictor of time and energy at every clock from response tables.");
  verb->footer(
      "Examples: gpoeo train data/tables/a100.csv --device a100 -o a100.gpoeo-model\n"
      "          gpoeo train data/tables/a100.csv --device a100 --evaluate\n"
      "          gpoeo train mine.csv@a100 generated.csv@h200 -o any.gpoeo-model");
  verb->add_option("TABLES", options->tables, "Response tables, each TABLE or TABLE@DEVICE")
      ->required();
  verb->add_option("--device", options->device,
                   "Card of the tables that name none ('gpoeo twin list')");
  verb->add_option("--also", options->also,
                   "Further tables to learn from, never judged (generated jobs)");
  verb->add_option("-o,--output", options->output, "Model file to write");
  verb->add_option(
      "--for", options->made_for,
      "GPU it is for, as the driver prints its name; default: the tables' card, or any");
  verb->add_flag("--evaluate", options->evaluate,
                 "Print how well held-out workloads are predicted, beside baselines");
  verb->add_option(
      "--judge", options->judge,
      "Tables to judge the finished model on; their workloads must be none of its own");
  verb->add_option("--hold-out", options->hold_out, "workload, family or both")
      ->check(CLI::IsMember({"workload", "family", "both"}))
      ->capture_default_str();
  verb->add_option("--max-slowdown", options->max_slowdown, "Limit that picks are judged at")
      ->capture_default_str();
  verb->add_option("--rounds", options->rounds, "Of boosting, at most; 0: no trees")
      ->check(CLI::Range(0, 400))
      ->capture_default_str();
  verb->add_flag("--quiet", options->quiet, "No progress lines");
  verb->add_flag("--json", options->json, "Print the evaluation as JSON");
  verb->callback(
      [options, &invocation] { invocation.action = [options] { return run_train(*options); }; });
}

}  // namespace gpoeo::app
