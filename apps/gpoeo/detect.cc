// SPDX-License-Identifier: Apache-2.0
// gpoeo detect FILE: the iterations in a recorded power trace or launch log.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "detect_plot.h"
#include "iteration/launch_repeats.h"
#include "iteration/log_csv.h"
#include "iteration/period.h"
#include "verb.h"

namespace gpoeo::app {
namespace {

struct DetectOptions {
  std::string file;
  bool launches = false;
  bool json = false;
  std::string plot;
};

struct Level {
  double period_s = 0;
  std::uint64_t iterations = 0;
};

// What both kinds of recording come to.
struct Detection {
  std::optional<double> period_s;
  double confidence = 0;
  std::vector<Level> levels;                // shortest first
  std::optional<std::uint64_t> iterations;  // of a launch log
  double cpu_s = 0;                         // of the decision, reading the file not counted
  std::string reason;
};

double process_cpu_s() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

Detection detect_in_trace(const iteration::PowerTrace& trace) {
  const double start = process_cpu_s();
  const iteration::PeriodEstimate estimate = iteration::estimate_period(trace);
  Detection detection;
  detection.cpu_s = process_cpu_s() - start;
  detection.period_s = estimate.period_s;
  detection.confidence = estimate.confidence;
  detection.reason = estimate.reason;
  for (const auto& level : estimate.levels) {
    detection.levels.push_back({level.period_s, static_cast<std::uint64_t>(level.iterations)});
  }
  return detection;
}

Detection detect_in_launches(const std::vector<iteration::LaunchRow>& rows) {
  const double start = process_cpu_s();
  iteration::LaunchRepeats repeats;
  for (const auto& row : rows) repeats.push(row.t_ns, row.function_id, row.stream);
  repeats.finish();
  Detection detection;
  detection.cpu_s = process_cpu_s() - start;
  const auto levels = repeats.levels();
  for (const auto& level : levels) {
    if (level.period_s) detection.levels.push_back({*level.period_s, level.iterations});
  }
  detection.period_s = repeats.period_s();
  if (const auto counted = repeats.counted()) {
    detection.confidence = levels[*counted].coverage;
    detection.iterations = repeats.iterations_in_all();
  } else {
    detection.reason =
        fmt::format("aperiodic: no repeat accounts for the {} launches", rows.size());
  }
  return detection;
}

void print_json(const Detection& detection) {
  nlohmann::ordered_json out = {{"periodic", detection.period_s.has_value()},
                                {"period_s", nullptr},
                                {"confidence", detection.confidence},
                                {"levels", nlohmann::ordered_json::array()},
                                {"cpu_s", detection.cpu_s},
                                {"reason", detection.reason}};
  if (detection.period_s) out["period_s"] = *detection.period_s;
  if (detection.iterations) out["iterations"] = *detection.iterations;
  for (const Level& level : detection.levels) {
    out["levels"].push_back({{"period_s", level.period_s}, {"iterations", level.iterations}});
  }
  fmt::print("{}\n", out.dump());
}

void print_text(const Detection& detection) {
  if (detection.period_s) {
    fmt::print("period {:.6g} s, confidence {:.2f}", *detection.period_s, detection.confidence);
    if (detection.iterations) fmt::print(", {} iterations", *detection.iterations);
    fmt::print("\n");
  } else {
    fmt::print("no period (confidence {:.2f}): {}\n", detection.confidence, detection.reason);
  }
  for (const Level& level : detection.levels) {
    fmt::print("  level {:.6g} s, {} iterations\n", level.period_s, level.iterations);
  }
}

int run_detect(const DetectOptions& options) {
  if (options.launches && !options.plot.empty()) {
    return fail({ErrorKind::kInvalid, "--plot draws power traces, not launch logs"}, kExitUsage);
  }
  Detection detection;
  if (options.launches) {
    const auto rows = iteration::read_launch_csv(options.file);
    if (!rows) return fail(rows.error(), kExitUsage);
    detection = detect_in_launches(*rows);
  } else {
    const auto trace = iteration::read_trace_csv(options.file);
    if (!trace) return fail(trace.error(), kExitUsage);
    detection = detect_in_trace(*trace);
    if (!options.plot.empty()) {
      const auto written =
          write_output_file(options.plot, detection_svg(options.file, *trace, detection.period_s));
      if (!written) return fail(written.error(), kExitUsage);
    }
  }
  options.json ? print_json(detection) : print_text(detection);
  return kExitOk;
}

}  // namespace

void add_detect(CLI::App& root, Invocation& invocation) {
  const auto options = std::make_shared<DetectOptions>();
  CLI::App* verb =
      root.add_subcommand("detect", "Find the iterations in a recorded power trace or launch log.");
  verb->footer(
      "Example: gpoeo detect train.power.csv --plot train.svg\n"
      "         gpoeo detect train.launches.csv.gz --launches --json");
  verb->add_option("FILE", options->file,
                   "Power trace (t_us,power_mW) or launch log (t_ns,function_id), also .gz")
      ->required();
  verb->add_flag("--launches", options->launches, "FILE is a launch log");
  verb->add_flag("--json", options->json, "Print one JSON object");
  verb->add_option("--plot", options->plot,
                   "Write an SVG picture: the trace, one period of it folded, its spectrum");
  verb->callback(
      [options, &invocation] { invocation.action = [options] { return run_detect(*options); }; });
}

}  // namespace gpoeo::app
