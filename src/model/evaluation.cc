// SPDX-License-Identifier: Apache-2.0
#include "model/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/chance.h"
#include "model/baselines.h"

namespace gpoeo::model {
namespace {

constexpr double kViolation = 0.005;  // DESIGN section 11: over the limit by more than this

// A method's answers for a workload; curves[line].time[point] and so on.
struct Answers {
  std::vector<LogCurves> curves;
  std::vector<LogCurves> errors;  // standard errors of the logarithms; empty: none
  double caution = 0;
};

void score_points(const Example& example, const Answers& answers, WorkloadScore& score,
                  MethodScores& all) {
  double points = 0;
  for (std::size_t l = 0; l < example.lines.size(); ++l) {
    const Line& line = example.lines[l];
    for (std::size_t p = 0; p < line.sm_slowdown.size(); ++p) {
      const double time = answers.curves[l].time[p] - line.log_time[p];
      const double energy = answers.curves[l].energy[p] - line.log_time[p] - line.log_power[p];
      ++points;
      score.time_error += std::abs(std::expm1(time));
      score.energy_error += std::abs(std::expm1(energy));
      score.time_bias += std::expm1(time);
      score.energy_bias += std::expm1(energy);
      all.time_errors.push_back(std::abs(std::expm1(time)));
      all.energy_errors.push_back(std::abs(std::expm1(energy)));
      if (answers.errors.empty()) continue;
      constexpr double kRounding = 1e-9;
      score.time_covered += std::abs(time) <= kNinety * answers.errors[l].time[p] + kRounding;
      score.energy_covered += std::abs(energy) <= kNinety * answers.errors[l].energy[p] + kRounding;
    }
  }
  for (double* sum : {&score.time_error, &score.energy_error, &score.time_bias, &score.energy_bias,
                      &score.time_covered, &score.energy_covered})
    *sum /= points;
}

// The least predicted energy whose slow-down keeps the limit; the default where none does.
void score_pick(const Example& example, const Answers& answers, const EvaluationOptions& options,
                WorkloadScore& score) {
  const double caution = options.caution.value_or(answers.caution);
  const double limit = std::log1p(options.max_slowdown);
  double least = 0;
  score.picked_sm_mhz = example.device.sm_mhz;
  for (std::size_t l = 0; l < example.lines.size(); ++l) {
    const Line& line = example.lines[l];
    for (std::size_t p = 0; p < line.sm_slowdown.size(); ++p) {
      const double truth_energy = line.log_time[p] + line.log_power[p];
      if (line.log_time[p] <= limit)
        score.oracle_saving = std::max(score.oracle_saving, -std::expm1(truth_energy));
      double time = answers.curves[l].time[p];
      if (!answers.errors.empty()) time += caution * answers.errors[l].time[p];
      if (time > limit || answers.curves[l].energy[p] >= least) continue;
      least = answers.curves[l].energy[p];
      score.picked_saving = -std::expm1(truth_energy);
      score.picked_slowdown = std::expm1(line.log_time[p]);
      score.picked_sm_mhz = example.device.sm_mhz / line.sm_slowdown[p];
    }
  }
}

Answers ask(const Predictor& predictor, const Example& example) {
  std::vector<MemoryClock> clocks;
  for (const Line& line : example.lines) {
    MemoryClock& clock = clocks.emplace_back();
    if (example.device.memory_mhz)
      clock.memory_mhz = *example.device.memory_mhz / line.memory_slowdown;
    for (const double x : line.sm_slowdown) clock.sm_mhz.push_back(example.device.sm_mhz / x);
  }
  const auto points = predictor.predict(example.device, example.profile, clocks);
  Answers out;
  out.caution = predictor.facts().caution;
  std::size_t at = 0;
  for (const Line& line : example.lines) {
    LogCurves& curve = out.curves.emplace_back();
    LogCurves& error = out.errors.emplace_back();
    for (std::size_t p = 0; p < line.sm_slowdown.size(); ++p, ++at) {
      curve.time.push_back(std::log(points[at].time));
      curve.energy.push_back(std::log(points[at].energy));
      error.time.push_back(points[at].time_error / points[at].time);
      error.energy.push_back(points[at].energy_error / points[at].energy);
    }
  }
  return out;
}

Result<Answers> ask(const Baseline& baseline, const Example& example) {
  Answers out;
  for (const Line& line : example.lines) {
    GPOEO_TRY(out.curves.emplace_back(), baseline.predict(example, line));
  }
  return out;
}

void record(const Example& example, const Answers& answers, const EvaluationOptions& options,
            MethodScores& into) {
  WorkloadScore score;
  score.workload = example.workload;
  score_points(example, answers, score, into);
  score_pick(example, answers, options, score);
  into.workloads.push_back(std::move(score));
}

// Distance of two profiles: activities and power, missing ones left out.
double distance(const Features& a, const Features& b) {
  double sum = 0;
  for (const Feature f :
       {Feature::kGrActive, Feature::kSmActive, Feature::kSmOccupancy, Feature::kTensorActive,
        Feature::kDramActive, Feature::kFp64Active, Feature::kFp32Active, Feature::kPowerFraction})
    if (a[f] && b[f]) sum += (*a[f] - *b[f]) * (*a[f] - *b[f]);
  return sum;
}

const Line* default_line(const Example& example) {
  for (const Line& line : example.lines)
    if (line.is_default) return &line;
  return &example.lines.front();
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

}  // namespace

Result<std::vector<MethodScores>> evaluate(const Dataset& measured, const Dataset& extra,
                                           const EvaluationOptions& options) {
  std::vector<MethodScores> all(options.baselines ? 4 : 1);
  all[0] = {"gpoeo", true, {}, {}, {}};
  if (options.baselines) {
    all[1] = {"plain XGBoost", false, {}, {}, {}};
    all[2] = {"ridge", false, {}, {}, {}};
    all[3] = {"XGBoost, no counters", false, {}, {}, {}};
  }
  std::size_t done = 0;
  for (const Example& held : measured.examples) {
    Dataset rest;
    rest.sources = measured.sources;
    for (const Example& e : measured.examples) {
      const bool same = options.hold_out == HoldOut::kWorkload ? e.workload == held.workload
                                                               : e.family == held.family;
      if (!same) rest.examples.push_back(e);
    }
    const std::vector<Example> measured_rest = rest.examples;
    for (const Example& e : extra.examples) rest.examples.push_back(e);
    GPOEO_TRY(const Predictor predictor, train(rest, options.train));
    record(held, ask(predictor, held), options, all[0]);
    if (options.baselines) {
      GPOEO_TRY(const auto plain, train_plain_trees(measured_rest, true));
      GPOEO_TRY(const auto blind, train_plain_trees(measured_rest, false));
      const auto ridge = train_ridge(measured_rest);
      const Baseline* const baselines[] = {plain.get(), ridge.get(), blind.get()};
      for (std::size_t b = 0; b < std::size(baselines); ++b) {
        GPOEO_TRY(const Answers answers, ask(*baselines[b], held));
        record(held, answers, options, all[b + 1]);
      }
    }
    ++done;
    if (options.progress)
      options.progress(
          fmt::format("{}/{} held out: {}", done, measured.examples.size(), held.workload));
  }
  return all;
}

MethodScores judge(const Predictor& predictor, const Dataset& on,
                   const EvaluationOptions& options) {
  MethodScores scores{"gpoeo, model as it is", true, {}, {}, {}};
  for (const Example& e : on.examples) record(e, ask(predictor, e), options, scores);
  return scores;
}

std::string explain(const Dataset& measured, const std::string& workload) {
  const auto found = std::ranges::find(measured.examples, workload, &Example::workload);
  if (found == measured.examples.end() || measured.examples.size() < 2) return "";
  const Example* nearest = nullptr;
  for (const Example& e : measured.examples)
    if (e.workload != workload && (!nearest || distance(e.features, found->features) <
                                                   distance(nearest->features, found->features)))
      nearest = &e;
  const auto lowest = [](const Example& e) {
    const Line& line = *default_line(e);
    return fmt::format("time x{:.2f}, power x{:.2f}", std::exp(line.log_time.back()),
                       std::exp(line.log_power.back()));
  };
  return fmt::format("at {:.0f} MHz {}; the nearest profile, {}: {}",
                     found->device.sm_mhz / default_line(*found)->sm_slowdown.back(),
                     lowest(*found), nearest->workload, lowest(*nearest));
}

Summary summarise(const MethodScores& scores, double max_slowdown) {
  Summary s;
  const double n = static_cast<double>(std::max<std::size_t>(1, scores.workloads.size()));
  std::vector<double> time, energy;
  double picked = 0, oracle = 0;
  for (const WorkloadScore& w : scores.workloads) {
    time.push_back(w.time_error);
    energy.push_back(w.energy_error);
    s.time_mean += w.time_error / n;
    s.energy_mean += w.energy_error / n;
    s.time_covered += w.time_covered / n;
    s.energy_covered += w.energy_covered / n;
    picked += w.picked_saving;
    oracle += w.oracle_saving;
    s.violations += w.picked_slowdown > max_slowdown + kViolation;
  }
  s.time_median = median(time);
  s.energy_median = median(energy);
  s.time_point_median = median(scores.time_errors);
  s.energy_point_median = median(scores.energy_errors);
  s.saving_ratio = oracle > 0 ? picked / oracle : 0;
  return s;
}

}  // namespace gpoeo::model
