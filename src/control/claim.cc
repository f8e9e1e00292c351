// SPDX-License-Identifier: Apache-2.0
#include "control/claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/chance.h"
#include "control/same_work.h"

namespace gpoeo::control {
namespace {

// Least share of all work that a net figure must rest on.
constexpr double kLeastCompared = 0.8;
constexpr unsigned kMostWorkChanges = 3;
// Up to there lost launches are made up for (docs/iterations.md, "1 % lost").
constexpr double kMostLost = 0.01;
// A claim that may be off by more (one standard error; kNinety of them are its interval) is none.
constexpr double kWidestClaim = 0.06;
// What pauses saved lies between nothing and what the iterations did: the 90 % interval reaches it.
constexpr double kPauseError = 1 / kNinety;

double square(double x) { return x * x; }

// Sums over all work: what it took, and what it takes at default clocks.
struct Sums {
  double energy = 0, energy_variance = 0, time = 0;
  double default_energy = 0, default_energy_error = 0, default_time = 0, default_time_error = 0;
  // Of how much work was done: energy and time at default clocks are off together.
  double amount_energy_variance = 0, amount_time_variance = 0;

  void add(const ComparedWork& w) {
    const double n = w.iterations.value;
    energy += w.energy_j.value;
    energy_variance += square(w.energy_j.error);
    time += w.time_s;
    default_energy += n * w.baseline.energy_j.value;
    default_time += n * w.baseline.time_s.value;
    // What a baseline is off by, those of all kinds of work may be off by together.
    default_energy_error += n * w.baseline.energy_j.error;
    default_time_error += n * w.baseline.time_s.error;
    amount_energy_variance += square(w.iterations.error * w.baseline.energy_j.value);
    amount_time_variance += square(w.iterations.error * w.baseline.time_s.value);
  }
};

// A ratio less 1 over iterations and pauses, when it is `share` of the whole that iterations are,
// and that may be off by `share_error`.
report::Figure with_pauses(double change, double error, double share, double share_error) {
  const double in_pauses = (1 - share) * std::abs(change) * kPauseError;
  return {change * share, std::hypot(error * share, in_pauses, change * share_error)};
}

}  // namespace

Claim claim(const Evidence& evidence) {
  Sums sums;
  for (const ComparedWork& w : evidence.work) sums.add(w);
  if (sums.default_energy <= 0) {
    return {.saving = {}, .why_not = "the energy of too much of the time could not be read"};
  }
  if (evidence.compared_share < kLeastCompared) {
    return {.saving = {},
            .why_not = fmt::format("only {} have a baseline to be compared with", evidence.of_all)};
  }
  const double energy_ratio = sums.energy / sums.default_energy;
  const double time_ratio = sums.time / sums.default_time;
  const double energy_error =
      energy_ratio * std::hypot(std::sqrt(sums.energy_variance) / sums.energy,
                                sums.default_energy_error / sums.default_energy,
                                std::sqrt(sums.amount_energy_variance) / sums.default_energy);
  const double time_error =
      time_ratio * std::hypot(sums.default_time_error, std::sqrt(sums.amount_time_variance)) /
      sums.default_time;
  const double energy_share = sums.default_energy / (sums.default_energy + evidence.pause_energy_j);
  const double energy_share_error = energy_share * evidence.pause_energy_error_j /
                                    (sums.default_energy + evidence.pause_energy_j);
  const double time_share = sums.default_time / (sums.default_time + evidence.pause_time_s);
  return {.saving =
              report::SavingSection{
                  .net_saving =
                      with_pauses(1 - energy_ratio, energy_error, energy_share, energy_share_error),
                  .net_slowdown = with_pauses(time_ratio - 1, time_error, time_share, 0),
                  .held_saving = {},
                  .held_slowdown = {}},
          .why_not = {}};
}

std::string why_nothing_is_claimed(const Circumstances& circumstances,
                                   const std::optional<report::SavingSection>& saving) {
  if (!circumstances.clocks_may_be_set) return "no clock was set";
  if (circumstances.several_jobs) {
    return "several processes launch work of their own; run each by itself";
  }
  if (circumstances.clock_writes == 0) return "default clocks were kept all the time";
  if (circumstances.launches_lost > kMostLost) {
    return fmt::format("{:.0f} % of the launches were lost, and iterations with them",
                       100 * circumstances.launches_lost);
  }
  if (circumstances.work_changes >= kMostWorkChanges) {
    return fmt::format("the work changed {} times: its iterations do not compare",
                       circumstances.work_changes);
  }
  if (!saving) return "";
  if (std::max(saving->net_slowdown.error, saving->net_saving.error) > kWidestClaim) {
    return "iterations differ too much from one another: nothing could be told within ten points";
  }
  const auto& slowdown = saving->net_slowdown;
  if (slowdown.value < -kImpossibleMargin - kImpossibleSigmas * slowdown.error) {
    return "iterations became shorter than at default clocks: the baseline was of other work";
  }
  return "";
}

}  // namespace gpoeo::control
