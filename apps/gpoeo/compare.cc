// SPDX-License-Identifier: Apache-2.0
// gpoeo compare A.csv B.csv: how much longer an iteration takes in trace B than in trace A.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>

#include "iteration/log_csv.h"
#include "iteration/slowdown.h"
#include "verb.h"

namespace gpoeo::app {
namespace {

using iteration::SlowdownEstimate;

struct CompareOptions {
  std::string a, b;
  bool json = false;
};

void print_json(const SlowdownEstimate& estimate) {
  nlohmann::ordered_json out = {{"time_ratio", nullptr}, {"low", nullptr}, {"high", nullptr}};
  if (estimate.time_ratio) {
    out["time_ratio"] = *estimate.time_ratio;
    out["low"] = estimate.low;
    out["high"] = estimate.high;
  }
  out["confidence"] = estimate.confidence;
  out["reason"] = estimate.reason;
  fmt::print("{}\n", out.dump());
}

void print_text(const SlowdownEstimate& estimate) {
  if (!estimate.time_ratio) {
    fmt::print("unknown: {}\n", estimate.reason);
    return;
  }
  fmt::print("time per iteration: x {:.4f} (90 % interval {:.4f} to {:.4f}), confidence {:.2f}\n",
             *estimate.time_ratio, estimate.low, estimate.high, estimate.confidence);
}

int run_compare(const CompareOptions& options) {
  const auto a = iteration::read_trace_csv(options.a);
  if (!a) return fail(a.error(), kExitUsage);
  const auto b = iteration::read_trace_csv(options.b);
  if (!b) return fail(b.error(), kExitUsage);
  const SlowdownEstimate estimate = iteration::compare_traces(*a, *b);
  options.json ? print_json(estimate) : print_text(estimate);
  return kExitOk;
}

}  // namespace

void add_compare(CLI::App& root, Invocation& invocation) {
  const auto options = std::make_shared<CompareOptions>();
  CLI::App* verb = root.add_subcommand(
      "compare",
      "Say how much longer an iteration takes in trace B than in trace A, with a 90 % "
      "interval, without knowing the period.");
  verb->footer("Example: gpoeo compare default.power.csv 1200mhz.power.csv --json");
  verb->add_option("A.csv", options->a, "Power trace: t_us,power_mW (also .gz)")->required();
  verb->add_option("B.csv", options->b, "Power trace of the same job at another clock")->required();
  verb->add_flag("--json", options->json, "Print one JSON object");
  verb->callback(
      [options, &invocation] { invocation.action = [options] { return run_compare(*options); }; });
}

}  // namespace gpoeo::app
