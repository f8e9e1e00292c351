// SPDX-License-Identifier: Apache-2.0
// gpoeo predict --model M --device D --profile P.json: time and energy at every clock pair.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/text.h"
#include "model/predictor.h"
#include "model_device.h"
#include "response/response_table.h"
#include "verb.h"

namespace gpoeo::app {
namespace {

struct PredictOptions {
  std::string model, device, profile, table, workload, max_slowdown = "5%";
  bool json = false;
};

// {"power_w": 312.5, "utilization": 0.97, "gr_active": 0.98, ...}: counters as response tables name
// them, unknown ones left out.
Result<model::Profile> read_profile(const std::string& path) {
  GPOEO_TRY(const std::string text, read_file(path, std::size_t{1} << 20));
  model::Profile profile;
  try {
    const auto json = nlohmann::json::parse(text);
    profile.power_w = json.at("power_w").get<double>();
    for (const auto& [key, value] : json.items()) {
      if (key == "power_w" || value.is_null()) continue;
      const double number = value.get<double>();
      bool known = key == "utilization";
      if (known) profile.utilization = number;
      for (std::size_t c = 0; c < response::kCounterCount; ++c) {
        const auto counter = static_cast<response::Counter>(c);
        if (key != to_string(counter)) continue;
        known = true;
        profile.counters[counter] = number;
      }
      if (!known || !std::isfinite(number) || number < 0)
        return make_error(
            ErrorKind::kInvalid,
            fmt::format("{}: {}: not a counter of a response table, or not a number >= 0", path,
                        key));
    }
  } catch (const nlohmann::json::exception& error) {
    // The library's own text tells where; its number means nothing to a user.
    const std::string what = error.what();
    return make_error(
        ErrorKind::kInvalid,
        fmt::format(
            "{}: not a profile: {}; write one object of numbers such as {{\"power_w\": 312.5, "
            "\"sm_active\": 0.9}}",
            path, what.substr(what.find(']') + 2)));
  }
  return profile;
}

// What no card can have been like is a mistake of whoever wrote it down: most often the unit.
Status check_profile(const model::Profile& profile, const model::Device& device,
                     const std::string& source) {
  constexpr double kOverLimit =
      1.2;  // of the power limit: it is kept in the mean, not at each moment
  constexpr double kOverOne = 1.02;  // of a fraction: what rounding may do
  const auto invalid = [&](const std::string& what) {
    return make_error(ErrorKind::kInvalid, fmt::format("{}: {}", source, what));
  };
  if (!std::isfinite(profile.power_w) || profile.power_w <= 0) {
    return invalid(fmt::format("power_w {:g}: the mean power at default clocks must be above 0 W",
                               profile.power_w));
  }
  if (profile.power_w > kOverLimit * device.power_limit_w) {
    return invalid(
        fmt::format("power_w {:g} is over this card's limit of {:.0f} W; is it in watts?",
                    profile.power_w, device.power_limit_w));
  }
  const auto bad_fraction = [](const std::optional<double>& value) {
    return value && !(*value >= 0 && *value <= kOverOne);
  };
  if (bad_fraction(profile.utilization)) {
    return invalid(fmt::format("utilization {:g} is no fraction 0 to 1", *profile.utilization));
  }
  for (std::size_t c = 0; c < response::kCounterCount; ++c) {
    const auto counter = static_cast<response::Counter>(c);
    if (response::is_fraction(counter) && bad_fraction(profile.counters[counter])) {
      return invalid(fmt::format("{} {:g} is no fraction 0 to 1", to_string(counter),
                                 *profile.counters[counter]));
    }
  }
  return {};
}

// The default row of a workload in a table stands for a profile.
Result<model::Profile> profile_from_table(const std::string& path, const std::string& workload) {
  GPOEO_TRY(const response::ResponseTable table, response::read_response_table(path));
  GPOEO_TRY(const response::Workload* found, table.find(workload));
  const response::Point& point = found->default_point();
  if (!point.power_w) {
    return make_error(ErrorKind::kInvalid,
                      fmt::format("{}: {}: its default row has no power_w", path, workload));
  }
  model::Profile profile;
  profile.power_w = *point.power_w;
  profile.counters = point.counters;
  return profile;
}

// Least expected energy that keeps the limit with the model's caution.
std::optional<model::PointPrediction> pick(const std::vector<model::PointPrediction>& points,
                                           double caution, double limit) {
  std::optional<model::PointPrediction> best;
  for (const model::PointPrediction& p : points) {
    if (p.time * std::exp(caution * p.time_error / p.time) > 1 + limit) continue;
    if (!best || p.energy < best->energy) best = p;
  }
  return best;
}

void print_json(const model::Predictor& predictor,
                const std::vector<model::PointPrediction>& points,
                const std::optional<model::PointPrediction>& best) {
  const auto json_of = [](const model::PointPrediction& p) {
    nlohmann::ordered_json out = {{"sm_mhz", p.sm_mhz}, {"memory_mhz", nullptr},
                                  {"time", p.time},     {"time_error", p.time_error},
                                  {"energy", p.energy}, {"energy_error", p.energy_error}};
    if (p.memory_mhz) out["memory_mhz"] = *p.memory_mhz;
    return out;
  };
  nlohmann::ordered_json out = {{"model_for", predictor.facts().device},
                                {"trained_on", predictor.facts().trained_on},
                                {"pick", nullptr},
                                {"points", nlohmann::ordered_json::array()}};
  if (best) out["pick"] = json_of(*best);
  for (const auto& p : points) out["points"].push_back(json_of(p));
  fmt::print("{}\n", out.dump());
}

void print_text(const model::Predictor& predictor,
                const std::vector<model::PointPrediction>& points,
                const std::optional<model::PointPrediction>& best, double limit) {
  fmt::print("model for {}, trained on {}\n", predictor.facts().device,
             predictor.facts().trained_on);
  fmt::print("{:>8} {:>8} | {:>7} {:>7} | {:>7} {:>7}\n", "SM MHz", "mem MHz", "time", "+-",
             "energy", "+-");
  for (const auto& p : points)
    fmt::print("{:8.0f} {:>8} | {:7.3f} {:7.3f} | {:7.3f} {:7.3f}\n", p.sm_mhz,
               p.memory_mhz ? fmt::format("{:.0f}", *p.memory_mhz) : "-", p.time, p.time_error,
               p.energy, p.energy_error);
  if (best)
    fmt::print(
        "least energy within {:g} %, with {:.2f} standard errors in hand: {:.0f} MHz{}, energy "
        "x {:.3f}, time x {:.3f}\n",
        100 * limit, predictor.facts().caution, best->sm_mhz,
        best->memory_mhz ? fmt::format(" (memory {:.0f} MHz)", *best->memory_mhz) : "",
        best->energy, best->time);
}

Status run(const PredictOptions& options) {
  GPOEO_TRY(const double limit, parse_slowdown_limit(options.max_slowdown));
  GPOEO_TRY(const model::Predictor predictor, model::Predictor::load(options.model));
  GPOEO_TRY(const KnownDevice known, known_device(options.device));
  GPOEO_TRY_STATUS(predictor.check_fits(known.device));
  if (options.profile.empty() == options.table.empty())
    return make_error(ErrorKind::kInvalid,
                      "give --profile FILE, or --table FILE with --workload NAME");
  GPOEO_TRY(const model::Profile profile, options.profile.empty()
                                              ? profile_from_table(options.table, options.workload)
                                              : read_profile(options.profile));
  GPOEO_TRY_STATUS(check_profile(profile, known.device,
                                 options.profile.empty() ? options.table : options.profile));
  const auto points = predictor.predict(known.device, profile, known.clocks);
  const auto best = pick(points, predictor.facts().caution, limit);
  options.json ? print_json(predictor, points, best) : print_text(predictor, points, best, limit);
  return {};
}

int run_predict(const PredictOptions& options) {
  const Status done = run(options);
  return done ? kExitOk : fail(done.error(), kExitUsage);
}

}  // namespace

void add_predict(CLI::App& root, Invocation& invocation) {
  const auto options = std::make_shared<PredictOptions>();
  CLI::App* verb = root.add_subcommand(
      "predict", "Say what a job's time and energy would be at every clock, from one profile.");
  verb->footer(
      "Example: gpoeo predict --model data/models/a100.gpoeo-model --device a100 "
      "--table data/tables/a100.csv --workload LSTM");
  verb->add_option("--model", options->model, "Model file of 'gpoeo train'")->required();
  verb->add_option("--device", options->device, "The card ('gpoeo twin list', or a device file)")
      ->required();
  verb->add_option(
      "--profile", options->profile,
      "JSON: power_w and what is known of utilization and counters, at default clocks");
  verb->add_option("--table", options->table,
                   "Take the profile from a response table's default row");
  verb->add_option("--workload", options->workload, "Of that table");
  verb->add_option("--max-slowdown", options->max_slowdown, "Limit for the pick")
      ->capture_default_str();
  verb->add_flag("--json", options->json, "Print one JSON object");
  verb->callback(
      [options, &invocation] { invocation.action = [options] { return run_predict(*options); }; });
}

}  // namespace gpoeo::app
