// SPDX-License-Identifier: Apache-2.0
#include "model/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "base/chance.h"
#include "model/boosting.h"
#include "model/fitted.h"

namespace gpoeo::model {
namespace {

constexpr std::size_t kLeastFamilies = 4;
// The fewest rounds whose error is within this share of the best are taken.
constexpr double kNear = 0.005;
constexpr int kRoundsAtLeast = 20;
// Picks by prediction alone are judged at this limit; beyond the slack it is a violation.
constexpr double kLimit = 0.05;
constexpr double kSlack = 0.005;
constexpr double kViolations = 0.10;
constexpr double kMostCaution = kNinety;
constexpr double kCoverage = 0.90;

std::vector<LineOf> lines_of(const std::vector<const Example*>& examples) {
  std::vector<LineOf> lines;
  for (const Example* e : examples)
    for (const Line& line : e->lines) lines.push_back({e, &line});
  return lines;
}

// The priors of a set, and what trees are to correct: power as each family is predicted by the
// others, since the kernel nearly passes through what it has seen.
struct Priors {
  Fitted fitted;
  BoostSet set;
};

Priors fit_priors(const std::vector<const Example*>& examples) {
  Priors out;
  out.set.lines = lines_of(examples);
  out.fitted.time_prior = fit_time_prior(out.set.lines);
  out.fitted.power_basis = make_power_basis(out.set.lines);
  std::vector<PowerScores> held_out;
  out.fitted.power_kernel = fit_power_kernel(out.set.lines, out.fitted.power_basis, &held_out);
  for (std::size_t i = 0; i < out.set.lines.size(); ++i) {
    const LineOf& l = out.set.lines[i];
    out.set.prior.push_back(
        {prior_shape(out.fitted.time_prior, l.example->features, l.line->memory_slowdown,
                     line_top(l.line->sm_slowdown.front())),
         held_out[i]});
  }
  return out;
}

// One line, held out: what was predicted of it and the truth.
struct HeldLine {
  LineOf line;
  std::vector<double> time_error, energy_error;  // of the logarithms
  std::vector<double> doubts;
};

HeldLine judge(const LineOf& l, const PredictedLine& predicted, double power_at_default,
               const PowerBasis& basis) {
  HeldLine out{l, {}, {}, {}};
  for (std::size_t i = 0; i < l.line->sm_slowdown.size(); ++i) {
    const double x = l.line->sm_slowdown[i];
    const double t = log_time(predicted.shape, x);
    const double p = basis.log_power(predicted.scores, x) - power_at_default;
    out.time_error.push_back(t - l.line->log_time[i]);
    out.energy_error.push_back(t + p - l.line->log_time[i] - l.line->log_power[i]);
    out.doubts.push_back(doubt(x, l.line->memory_slowdown));
  }
  return out;
}

double mean_relative(const std::vector<double>& log_errors) {
  double sum = 0;
  for (const double e : log_errors) sum += std::abs(std::expm1(e));
  return sum / static_cast<double>(std::max<std::size_t>(1, log_errors.size()));
}

struct Fold {
  Priors priors;
  std::vector<LineOf> held;
  std::vector<PredictedLine> prior;  // of the held lines
  std::vector<PredictedLine> base;   // of their examples' default line
  BoostResult boosted;
};

// Held-out lines after the given rounds.
std::vector<HeldLine> judge(const Fold& fold, std::size_t time_rounds, std::size_t power_rounds) {
  std::vector<HeldLine> out;
  for (std::size_t i = 0; i < fold.held.size(); ++i) {
    const auto& path = fold.boosted.held_out;
    Corrections by = path[std::min(time_rounds, path.size() - 1)][i];
    const Corrections power = path[std::min(power_rounds, path.size() - 1)][i];
    for (const Target t : {Target::kPower0, Target::kPower1})
      by[static_cast<std::size_t>(t)] = power[static_cast<std::size_t>(t)];
    PredictedLine line = fold.prior[i];
    correct(line, by, fold.held[i].line->is_default);
    PredictedLine base = fold.base[i];
    if (fold.held[i].line->is_default) base = line;
    const double at_default = fold.priors.fitted.power_basis.log_power(base.scores, 1);
    out.push_back(judge(fold.held[i], line, at_default, fold.priors.fitted.power_basis));
  }
  return out;
}

Result<Fold> run_fold(const std::vector<const Example*>& train,
                      const std::vector<const Example*>& held, int rounds) {
  Fold fold;
  fold.priors = fit_priors(train);
  fold.held = lines_of(held);
  for (const LineOf& l : fold.held) {
    fold.prior.push_back(prior_line(fold.priors.fitted, l.example->features,
                                    l.line->memory_slowdown,
                                    line_top(l.line->sm_slowdown.front())));
    fold.base.push_back(prior_line(fold.priors.fitted, l.example->features, 1, 1));
  }
  GPOEO_TRY(fold.boosted,
            boost(fold.priors.set, fold.priors.fitted.power_basis, rounds, rounds, fold.held));
  return fold;
}

// Families in turn to folds, largest first, ties by name: even folds, the same each time.
std::map<std::string, int> assign_folds(const Dataset& dataset, int folds) {
  std::map<std::string, std::size_t> sizes;
  for (const Example& e : dataset.examples) ++sizes[e.family];
  std::vector<std::pair<std::size_t, std::string>> order;
  for (const auto& [name, size] : sizes) order.emplace_back(size, name);
  std::ranges::sort(order, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::map<std::string, int> out;
  for (std::size_t i = 0; i < order.size(); ++i)
    out[order[i].second] = static_cast<int>(i % static_cast<std::size_t>(folds));
  return out;
}

// errors[round][line]. The fewest rounds that are nearly the best; none, unless the gain over none
// is larger than its own standard error over the held-out lines.
std::size_t choose_rounds(const std::vector<std::vector<double>>& errors) {
  const double n = static_cast<double>(errors.front().size());
  std::vector<double> means;
  for (const auto& of_round : errors)
    means.push_back(std::accumulate(of_round.begin(), of_round.end(), 0.0) / n);
  const auto best = static_cast<std::size_t>(std::ranges::min_element(means) - means.begin());
  const double gain = means[0] - means[best];
  double square = 0;
  for (std::size_t i = 0; i < errors[0].size(); ++i) {
    const double off = errors[0][i] - errors[best][i] - gain;
    square += off * off;
  }
  if (n < 2 || gain <= 2 * std::sqrt(square / (n - 1) / n)) return 0;
  for (std::size_t r = 0; r < means.size(); ++r)
    if (means[r] <= means[best] * (1 + kNear)) return r;
  return best;
}

// The half-width, per unit of doubt, that holds the share wanted; each line counts
// the same.
double spread(const std::vector<HeldLine>& lines, bool time, bool at_default) {
  std::vector<std::pair<double, double>> scores;  // score, weight
  double total = 0;
  for (const HeldLine& l : lines) {
    if (l.line.line->is_default != at_default) continue;
    const auto& errors = time ? l.time_error : l.energy_error;
    for (std::size_t i = 0; i < errors.size(); ++i) {
      if (l.doubts[i] < 1e-3) continue;  // the default itself
      const double weight = 1 / static_cast<double>(errors.size());
      scores.emplace_back(std::abs(errors[i]) / l.doubts[i], weight);
      total += weight;
    }
  }
  std::ranges::sort(scores);
  double sum = 0;
  for (const auto& [score, weight] : scores) {
    sum += weight;
    if (sum >= kCoverage * total) return score;
  }
  return scores.empty() ? 0 : scores.back().first;
}

// The truth of what would be picked among an example's lines: the least predicted energy whose time
// keeps the limit with `caution` standard errors in hand.
double picked_slowdown(std::span<const HeldLine> lines, double caution,
                       const std::array<double, 2>& time_spread) {
  double least = 0, slowdown = 0;
  for (const HeldLine& l : lines) {
    const double error = caution * time_spread[l.line.line->is_default ? 0 : 1] / kNinety;
    for (std::size_t i = 0; i < l.time_error.size(); ++i) {
      const double truth = l.line.line->log_time[i];
      const double energy = truth + l.line.line->log_power[i] + l.energy_error[i];
      if (truth + l.time_error[i] + error * l.doubts[i] > std::log1p(kLimit) || energy >= least)
        continue;
      least = energy;
      slowdown = std::expm1(truth);
    }
  }
  return slowdown;
}

// The smallest caution with which picks keep the limit in all but kViolations of the held-out
// examples.
double choose_caution(std::span<const HeldLine> lines, const std::array<double, 2>& time_spread) {
  for (int step = 0;; ++step) {
    const double caution = 0.05 * step;
    if (caution >= kMostCaution) return kMostCaution;
    int picks = 0, violations = 0;
    for (std::size_t first = 0; first < lines.size();) {
      std::size_t end = first + 1;
      while (end < lines.size() && lines[end].line.example == lines[first].line.example) ++end;
      ++picks;
      violations += picked_slowdown(lines.subspan(first, end - first), caution, time_spread) >
                    kLimit + kSlack;
      first = end;
    }
    if (violations <= kViolations * picks) return caution;
  }
}

std::string join(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& p : parts) {
    if (!out.empty()) out.append(", ");
    out.append(p);
  }
  return out;
}

}  // namespace

Result<Predictor> train(const Dataset& dataset, const TrainOptions& options) {
  std::map<std::string, int> families;
  for (const Example& e : dataset.examples) families[e.family] = 0;
  if (families.size() < kLeastFamilies)
    return make_error(ErrorKind::kInvalid,
                      fmt::format("{} workload families to train on; at least {} are needed, since "
                                  "errors are judged on families held out",
                                  families.size(), kLeastFamilies));
  const auto say = [&options](const std::string& line) {
    if (options.progress) options.progress(line);
  };
  const int folds = std::min(options.folds, static_cast<int>(families.size()));
  const std::map<std::string, int> fold_of = assign_folds(dataset, folds);
  std::size_t line_count = 0;
  for (const Example& e : dataset.examples) line_count += e.lines.size();
  // Few lines carry few trees: more would only cost time to refuse.
  const int rounds =
      options.trees ? std::min(options.rounds, kRoundsAtLeast + static_cast<int>(line_count)) : 0;
  std::vector<Fold> all;
  for (int f = 0; f < folds; ++f) {
    std::vector<const Example*> train_on, held;
    for (const Example& e : dataset.examples)
      (fold_of.at(e.family) == f ? held : train_on).push_back(&e);
    GPOEO_TRY(all.emplace_back(), run_fold(train_on, held, rounds));
    say(fmt::format("fold {}/{}: {} workloads to learn from, {} held out", f + 1, folds,
                    train_on.size(), held.size()));
  }
  const auto judge_all = [&all](std::size_t t, std::size_t p) {
    std::vector<HeldLine> held;
    for (const Fold& fold : all)
      for (HeldLine& l : judge(fold, t, p)) held.push_back(std::move(l));
    return held;
  };
  const auto mean_of = [](const std::vector<HeldLine>& held, auto&& error) {
    double sum = 0;
    for (const HeldLine& l : held) sum += error(l);
    return sum / static_cast<double>(held.size());
  };
  std::vector<std::vector<double>> time_errors, power_errors;
  for (std::size_t r = 0; r <= static_cast<std::size_t>(rounds); ++r) {
    std::vector<double>& time = time_errors.emplace_back();
    std::vector<double>& of_power = power_errors.emplace_back();
    for (const HeldLine& l : judge_all(r, r)) {
      time.push_back(mean_relative(l.time_error));
      std::vector<double> power;
      for (std::size_t i = 0; i < l.time_error.size(); ++i)
        power.push_back(l.energy_error[i] - l.time_error[i]);
      of_power.push_back(mean_relative(power));
    }
  }
  const std::size_t time_rounds = choose_rounds(time_errors);
  const std::size_t power_rounds = choose_rounds(power_errors);
  const std::vector<HeldLine> held = judge_all(time_rounds, power_rounds);
  say(fmt::format("trees: {} rounds for time, {} for power", time_rounds, power_rounds));

  std::vector<const Example*> everything;
  for (const Example& e : dataset.examples) everything.push_back(&e);
  Priors priors = fit_priors(everything);
  GPOEO_TRY(BoostResult boosted,
            boost(priors.set, priors.fitted.power_basis, static_cast<int>(time_rounds),
                  static_cast<int>(power_rounds), {}));
  auto fitted = std::make_shared<Fitted>(std::move(priors.fitted));
  for (std::size_t t = 0; t < kTargetCount; ++t) {
    if (boosted.json[t].empty()) continue;
    const auto json = nlohmann::json::parse(boosted.json[t], nullptr, false);
    GPOEO_TRY(fitted->forests[t], Forest::from_xgboost(json, kFeatureCount));
    fitted->forest_json[t] = Forest::essentials(json).dump();
  }
  fitted->time_rounds = static_cast<int>(time_rounds);
  fitted->power_rounds = static_cast<int>(power_rounds);
  for (const std::size_t other : {0U, 1U}) {
    fitted->time_spread[other] = spread(held, true, other == 0);
    fitted->energy_spread[other] = spread(held, false, other == 0);
  }
  ModelFacts& facts = fitted->facts;
  facts.device = options.device;
  facts.gpoeo_version = options.gpoeo_version;
  facts.trained_on = join(dataset.sources);
  facts.training_hash = dataset.hash();
  facts.workloads = dataset.examples.size();
  facts.families = families.size();
  facts.caution = choose_caution(held, fitted->time_spread);
  facts.cv_time_error =
      mean_of(held, [](const HeldLine& l) { return mean_relative(l.time_error); });
  facts.cv_energy_error =
      mean_of(held, [](const HeldLine& l) { return mean_relative(l.energy_error); });
  say(fmt::format("held out: time {:.2f} %, energy {:.2f} % (mean absolute error)",
                  100 * facts.cv_time_error, 100 * facts.cv_energy_error));
  return Predictor(std::move(fitted));
}

Result<Predictor> train_excluding(const Dataset& dataset, std::span<const std::string> families,
                                  const TrainOptions& options) {
  return train(without_families(dataset, families), options);
}

}  // namespace gpoeo::model
