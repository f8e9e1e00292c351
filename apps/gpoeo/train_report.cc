// SPDX-License-Identifier: Apache-2.0
#include "train_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace gpoeo::app {
namespace {

using model::MethodScores;
using model::Summary;
using model::WorkloadScore;

constexpr std::size_t kWorst = 3;

void print_worst(const char* what, const MethodScores& ours, double WorkloadScore::*error,
                 double WorkloadScore::*bias, const model::Dataset& measured) {
  std::vector<WorkloadScore> order = ours.workloads;
  std::ranges::stable_sort(order,
                           [error](const auto& a, const auto& b) { return a.*error > b.*error; });
  fmt::print("worst in {}:\n", what);
  for (std::size_t i = 0; i < std::min(kWorst, order.size()); ++i)
    fmt::print("  {:<14} {:5.1f} % ({:+.1f} % on average): {}\n", order[i].workload,
               100 * order[i].*error, 100 * order[i].*bias,
               model::explain(measured, order[i].workload));
}

nlohmann::ordered_json json_of(const MethodScores& method, double max_slowdown) {
  const Summary s = model::summarise(method, max_slowdown);
  nlohmann::ordered_json out = {{"method", method.method},
                                {"time_error_mean", s.time_mean},
                                {"time_error_median", s.time_median},
                                {"energy_error_mean", s.energy_mean},
                                {"energy_error_median", s.energy_median},
                                {"saving_ratio", s.saving_ratio},
                                {"violations", s.violations},
                                {"time_covered", nullptr},
                                {"energy_covered", nullptr},
                                {"workloads", nlohmann::ordered_json::array()}};
  if (method.has_intervals) {
    out["time_covered"] = s.time_covered;
    out["energy_covered"] = s.energy_covered;
  }
  for (const WorkloadScore& w : method.workloads)
    out["workloads"].push_back({{"workload", w.workload},
                                {"time_error", w.time_error},
                                {"energy_error", w.energy_error},
                                {"oracle_saving", w.oracle_saving},
                                {"picked_saving", w.picked_saving},
                                {"picked_slowdown", w.picked_slowdown},
                                {"picked_sm_mhz", w.picked_sm_mhz}});
  return out;
}

const char* to_string(const std::optional<model::HoldOut>& hold_out) {
  if (!hold_out) return "set";
  return *hold_out == model::HoldOut::kWorkload ? "workload" : "family";
}

}  // namespace

void print_text(const EvaluationReport& report, const model::Dataset& measured) {
  if (report.methods.empty()) return;
  const std::size_t n = report.methods.front().workloads.size();
  fmt::print("{}: {} workloads, each predicted by models that never saw its {}\n", report.title, n,
             to_string(report.hold_out));
  fmt::print("{:<24} | {:^13} | {:^13} | {:^13} | {:^15} | {:^24}\n", "", "time, %", "energy, %",
             "points, %", "in 90 %, %", fmt::format("picks at {:g} %", 100 * report.max_slowdown));
  fmt::print("{:<24} | {:>6} {:>6} | {:>6} {:>6} | {:>6} {:>6} | {:>7} {:>7} | {:>12} {:>11}\n", "",
             "mean", "median", "mean", "median", "time", "energy", "time", "energy", "saving/best",
             "violations");
  for (const MethodScores& m : report.methods) {
    const Summary s = model::summarise(m, report.max_slowdown);
    const auto covered = [&m](double share) {
      return m.has_intervals ? fmt::format("{:.1f}", 100 * share) : std::string("-");
    };
    fmt::print(
        "{:<24} | {:6.2f} {:6.2f} | {:6.2f} {:6.2f} | {:6.2f} {:6.2f} | {:>7} {:>7} | {:12.3f} "
        "{:>11}\n",
        m.method, 100 * s.time_mean, 100 * s.time_median, 100 * s.energy_mean,
        100 * s.energy_median, 100 * s.time_point_median, 100 * s.energy_point_median,
        covered(s.time_covered), covered(s.energy_covered), s.saving_ratio,
        fmt::format("{} of {}", s.violations, n));
  }
  const MethodScores& ours = report.methods.front();
  print_worst("time", ours, &WorkloadScore::time_error, &WorkloadScore::time_bias, measured);
  print_worst("energy", ours, &WorkloadScore::energy_error, &WorkloadScore::energy_bias, measured);
  for (const WorkloadScore& w : ours.workloads)
    if (w.picked_slowdown > report.max_slowdown + 0.005)
      fmt::print("violation: {} picked at {:.0f} MHz, {:.1f} % slower\n", w.workload,
                 w.picked_sm_mhz, 100 * w.picked_slowdown);
  fmt::print("\n");
}

void print_json(const std::vector<EvaluationReport>& reports) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const EvaluationReport& report : reports) {
    nlohmann::ordered_json methods = nlohmann::ordered_json::array();
    for (const MethodScores& m : report.methods) methods.push_back(json_of(m, report.max_slowdown));
    out.push_back({{"set", report.title},
                   {"held_out", to_string(report.hold_out)},
                   {"max_slowdown", report.max_slowdown},
                   {"methods", methods}});
  }
  fmt::print("{}\n", out.dump(1));
}

}  // namespace gpoeo::app
