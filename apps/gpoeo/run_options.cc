// SPDX-License-Identifier: Apache-2.0
#include "run_options.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/text.h"
#include "control/counter_choice.h"
#include "policy/policy.h"
#include "settings.h"

namespace gpoeo::app {
namespace {

Result<bool> parse_bool(const Settings::Value& value, const std::string& key) {
  if (value.text == "true" || value.text == "1" || value.text == "yes") return true;
  if (value.text == "false" || value.text == "0" || value.text == "no") return false;
  return make_error(ErrorKind::kInvalid, fmt::format("{}: {} = '{}': write true or false",
                                                     value.source, key, value.text));
}

// Where the value of `key` came from, for error messages.
std::string origin(const CLI::App& verb, const Settings& settings, const std::string& key) {
  if (verb.count("--" + key) > 0) return "--" + key;
  const auto value = settings.get(key);
  return value ? value->source : "--" + key;
}

}  // namespace

void declare_run_options(CLI::App& verb, RunOptions& options) {
  verb.add_option("--policy", options.policy,
                  "gpoeo, default, static:MHz, power-limit:W, gpoeo-paper, odpp, zeus");
  verb.add_option("--max-slowdown", options.max_slowdown_text,
                  "Limit on time per iteration: 5%, 0.05 or 1.05");
  verb.add_option("--objective", options.objective_text,
                  "What is to be least within the limit: energy, edp, ed2p or cost");
  verb.add_option("--eta", options.cost_eta, "Share of energy in --objective cost, 0 to 1")
      ->check(CLI::Range(0.0, 1.0));
  verb.add_option("--gpus", options.gpus, "all, or a list of indices, UUIDs or PCI ids");
  verb.add_option(
      "--twin", options.backend.twin,
      "Simulated GPU: a device (gpoeo twin list), several (a100+v100), a device file, or a twin "
      "that is up");
  verb.add_option("--twin-speed", options.backend.twin_speed,
                  "Simulated seconds per second, for a twin that this run makes");
  verb.add_option("--trace", options.trace_file, "Write power and clocks of the first GPU as CSV");
  verb.add_flag("--json", options.json, "Print the report as JSON on stdout, when the job is done");
  verb.add_option("--report", options.report_file, "Write the report as JSON to this file");
  verb.add_flag("--dry-run", options.dry_run, "Set nothing; measure, and say what would be set");
  verb.add_flag("--strict", options.strict,
                "Fail (125) when clocks cannot be set, or could not be restored");
  verb.add_option(
      "--counters", options.counters,
      "Hardware counters: auto, gpm (the driver's own), cupti (read beside the job), none");
  verb.add_option("--model", options.model,
                  "What predicts energy and time: auto (the shipped one of this card), none, FILE");
  verb.add_flag("--no-inject", options.no_inject,
                "Do not load gpoeo's launch log into the job: no exact iterations");
  verb.add_flag("-q,--quiet", options.quiet, "No progress, no report");
  verb.add_flag("--no-guardian", options.no_guardian)->group("");
  // The first word that is no flag of ours begins the job's command; nothing behind it is ours.
  verb.prefix_command();
  verb.footer(
      "Example: gpoeo run --twin a100 --twin-speed 20 -- gpoeo-twin-job lstm --seconds 900");
}

Status complete_run_options(const CLI::App& verb, RunOptions& options) {
  GPOEO_TRY(const Settings settings, Settings::load());
  const auto fill = [&](const std::string& key, std::string& field) {
    if (verb.count("--" + key) > 0) return;
    if (const auto value = settings.get(key)) field = value->text;
  };
  const auto fill_flag = [&](const std::string& key, bool& field) -> Status {
    if (verb.count("--" + key) > 0) return {};
    if (const auto value = settings.get(key)) {
      GPOEO_TRY(field, parse_bool(*value, key));
    }
    return {};
  };
  fill("policy", options.policy);
  fill("max-slowdown", options.max_slowdown_text);
  fill("objective", options.objective_text);
  fill("twin", options.backend.twin);
  fill("counters", options.counters);
  if (const auto use = control::parse_counter_use(options.counters); !use) {
    return with_context(origin(verb, settings, "counters"), use.error());
  }
  if (verb.count("--gpus") == 0) {
    if (const auto value = settings.get("gpus")) options.gpus = value->text;
  }
  GPOEO_TRY_STATUS(fill_flag("dry-run", options.dry_run));
  GPOEO_TRY_STATUS(fill_flag("strict", options.strict));
  GPOEO_TRY_STATUS(fill_flag("quiet", options.quiet));
  GPOEO_TRY_STATUS(fill_flag("no-inject", options.no_inject));
  fill("model", options.model);
  if (const auto speed = settings.get("twin-speed"); speed && verb.count("--twin-speed") == 0) {
    const auto number = parse_double(speed->text);
    if (!number) return with_context(speed->source + ": twin-speed", number.error());
    options.backend.twin_speed = *number;
  }
  if (options.backend.twin_speed < 0.001 || options.backend.twin_speed > 10000) {
    return make_error(ErrorKind::kInvalid, fmt::format("{}: {} is outside 0.001 to 10000",
                                                       origin(verb, settings, "twin-speed"),
                                                       options.backend.twin_speed));
  }
  const auto limit = parse_slowdown_limit(options.max_slowdown_text);
  if (!limit) return with_context(origin(verb, settings, "max-slowdown"), limit.error());
  options.max_slowdown = *limit;
  const auto objective = policy::parse_objective(options.objective_text);
  if (!objective) return with_context(origin(verb, settings, "objective"), objective.error());
  options.objective = *objective;
  if (const auto policy = policy::make_policy(options.policy); !policy) {
    return with_context(origin(verb, settings, "policy"), policy.error());
  }
  if (options.command.empty() || options.command.front().empty()) {
    return make_error(ErrorKind::kInvalid, "no command: gpoeo run [options] -- python train.py");
  }
  return {};
}

}  // namespace gpoeo::app
