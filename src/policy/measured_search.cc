// SPDX-License-Identifier: Apache-2.0
#include "policy/measured_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "policy/estimates.h"
#include "policy/response_fit.h"

namespace gpoeo::policy {
namespace {

constexpr MeasureGoal kBaselineGoal{
    .least_iterations = 12, .least = Seconds(5), .longest = Seconds(20), .precision = 0.003};
constexpr MeasureGoal kFreshBaselineGoal{
    .least_iterations = 8, .least = Seconds(4), .longest = Seconds(10), .precision = 0.004};
constexpr MeasureGoal kProbeGoal{
    .least_iterations = 8, .least = Seconds(3), .longest = Seconds(15), .precision = 0.004};
constexpr MeasureGoal kHoldGoal{
    .least_iterations = 8, .least = Seconds(10), .longest = Seconds(30), .precision = 0.0};

Decision baseline(const MeasureGoal& goal, std::string why) {
  return {.purpose = Purpose::kBaseline, .setting = {}, .goal = goal, .why = std::move(why)};
}

Decision at_clock(Purpose purpose, Hertz sm, std::string why) {
  return {.purpose = purpose,
          .setting = {.sm = sm, .memory = std::nullopt},
          .goal = purpose == Purpose::kProbe ? kProbeGoal : kHoldGoal,
          .why = std::move(why)};
}

// Seconds after the newest baseline at which another is due: soon at first, while there is little
// to compare with, then every five minutes.
double baseline_due_after_s(std::size_t baselines) {
  const double n = static_cast<double>(baselines);
  return std::min(300.0, 60.0 * n * n);
}

// One look at the evidence; built per decision.
class Search {
 public:
  Search(const Problem& problem, const MeasuredSearchOptions& options, const Estimates& estimates)
      : problem_(problem),
        options_(options),
        measured_(estimates.clocks),
        fit_(problem.sm_clocks.back(), measured_) {}

  // The clock with the least expected energy among those that may be held; nullopt when default
  // clocks are best.
  std::optional<Hertz> best_expected() const {
    const double top = problem_.sm_clocks.back().value();
    const double floor =
        std::max(options_.lowest * top, options_.step_down * measured_.front().sm.value());
    std::optional<Hertz> best;
    double least = 1 - options_.least_saving;
    for (const Hertz f : problem_.sm_clocks) {
      if (f.value() < floor || f == problem_.sm_clocks.back() || !admissible(f)) continue;
      if (const double energy = energy_at(f); energy < least) {
        least = energy;
        best = f;
      }
    }
    return best;
  }

  // Where energy still falls at the lowest clock measured and time has room, the fit knows too
  // little of what is below: the next clock to look at, nullopt when there is none.
  std::optional<Hertz> further_down(Hertz best) const {
    const ClockEstimate& lowest = measured_.front();
    const double top = problem_.sm_clocks.back().value();
    if (best > lowest.sm) return std::nullopt;
    if (measured_.size() > 1 && measured_[1].energy_ratio <= lowest.energy_ratio) {
      return std::nullopt;
    }
    const double target = std::max(options_.lowest * top, options_.look_down * lowest.sm.value());
    const auto next = std::ranges::lower_bound(problem_.sm_clocks, Hertz(target));
    if (next == problem_.sm_clocks.end() || *next >= lowest.sm || !admissible(*next)) {
      return std::nullopt;
    }
    return *next;
  }

  // Whether a measured clock that may be held lies so near to `f` that it tells what `f` will do.
  bool known_nearby(Hertz f) const {
    const double near = options_.near * problem_.sm_clocks.back().value();
    return std::ranges::any_of(measured_, [&](const ClockEstimate& e) {
      return std::abs((e.sm - f).value()) <= near && within_limit(e, options_.enter_sigmas);
    });
  }

  // Measured slow-down within the limit, with so many standard errors to spare.
  bool within_limit(const ClockEstimate& e, double sigmas) const {
    return e.time_ratio + sigmas * e.time_error <= 1 + problem_.max_slowdown;
  }

  const ClockEstimate* best_measured() const {
    const ClockEstimate* best = nullptr;
    for (const ClockEstimate& e : measured_) {
      if (!within_limit(e, options_.enter_sigmas)) continue;
      if (e.energy_ratio > 1 - options_.least_saving) continue;
      if (best == nullptr || e.energy_ratio < best->energy_ratio) best = &e;
    }
    return best;
  }

  const ClockEstimate* measured_at(Hertz f) const {
    const auto at = std::ranges::find(measured_, f, &ClockEstimate::sm);
    return at == measured_.end() ? nullptr : &*at;
  }

  double energy_at(Hertz f) const {
    const auto* e = measured_at(f);
    return e != nullptr ? e->energy_ratio : fit_.energy_ratio(f);
  }

  const ResponseFit& fit() const { return fit_; }
  std::size_t probes() const { return measured_.size(); }

 private:
  // A measured clock by its own evidence; another by the fit, and never below one that was
  // measured to be too slow.
  bool admissible(Hertz f) const {
    if (const auto* e = measured_at(f)) return within_limit(*e, options_.enter_sigmas);
    if (fit_.time_ratio(f) > 1 + options_.aim * problem_.max_slowdown) return false;
    return std::ranges::none_of(measured_, [&](const ClockEstimate& e) {
      return e.sm > f && !within_limit(e, -options_.refuse_sigmas);
    });
  }

  const Problem& problem_;
  const MeasuredSearchOptions& options_;
  const std::vector<ClockEstimate>& measured_;
  ResponseFit fit_;
};

std::string expectation(const ResponseFit& fit, Hertz f) {
  return fmt::format("{:.1f} % less energy at {:+.1f} % time expected",
                     100 * (1 - fit.energy_ratio(f)), 100 * (fit.time_ratio(f) - 1));
}

std::string evidence(const ClockEstimate& e) {
  return fmt::format("{:.1f} % less energy at {:+.1f} % time measured", 100 * (1 - e.energy_ratio),
                     100 * (e.time_ratio - 1));
}

}  // namespace

Decision MeasuredSearch::decide(const Problem& problem,
                                std::span<const Observation> observations) const {
  if (problem.sm_clocks.size() < 3) return {.why = "the driver lists fewer than three SM clocks"};
  const auto estimates = estimate(observations);
  if (!estimates) return baseline(kBaselineGoal, "measuring default clocks");

  const Hertz top = problem.sm_clocks.back();
  if (estimates->clocks.empty()) {
    const Hertz first = *std::ranges::lower_bound(problem.sm_clocks, top * options_.first_probe);
    return at_clock(Purpose::kProbe, first, "first probe");
  }
  const Seconds last = observations.back().at;
  const double baseline_age_s = (last - estimates->last_baseline_at).value();
  if (baseline_age_s > baseline_due_after_s(estimates->baselines)) {
    return baseline(kFreshBaselineGoal, "fresh baseline");
  }

  const Search search(problem, options_, *estimates);
  const auto wanted = search.best_expected();

  // Holding already? Leave only for a gain worth a move, or when the evidence is over the limit.
  const auto last_set =
      std::ranges::find_if(observations.rbegin(), observations.rend(),
                           [](const Observation& o) { return o.setting.sm.has_value(); });
  const bool held_twice =
      std::ranges::count(observations, last_set->setting, &Observation::setting) >= 2;
  const auto* now = search.measured_at(*last_set->setting.sm);
  if (held_twice && search.within_limit(*now, options_.stay_sigmas) &&
      now->energy_ratio <= 1 - options_.least_saving &&
      (!wanted || search.energy_at(*wanted) >= now->energy_ratio - options_.hysteresis)) {
    return at_clock(Purpose::kHold, now->sm, evidence(*now));
  }

  if (!wanted) {
    if (const auto* best = search.best_measured()) {
      return at_clock(Purpose::kHold, best->sm, evidence(*best));
    }
    // Everything measured is too slow or saves nothing: look once more close to the top.
    const Hertz highest = estimates->clocks.back().sm;
    const Hertz halfway = *std::ranges::lower_bound(problem.sm_clocks, (highest + top) / 2);
    const bool room = (top - halfway).value() > options_.near * top.value();
    if (room && search.probes() < options_.most_probes && halfway > highest) {
      return at_clock(Purpose::kProbe, halfway, "closer to default clocks");
    }
    return {.purpose = Purpose::kLeave,
            .setting = {},
            .goal = kHoldGoal,
            .why = fmt::format("no clock saves {:.0f} % within the limit",
                               100 * options_.least_saving)};
  }
  if (search.probes() < options_.most_probes) {
    if (const auto below = search.further_down(*wanted)) {
      return at_clock(Purpose::kProbe, *below, "energy still falls: further down");
    }
  }
  if (const auto* measured = search.measured_at(*wanted)) {
    return at_clock(Purpose::kHold, measured->sm, evidence(*measured));
  }
  if (search.known_nearby(*wanted)) {
    return at_clock(Purpose::kHold, *wanted, expectation(search.fit(), *wanted));
  }
  if (search.probes() >= options_.most_probes) {
    if (const auto* best = search.best_measured()) {
      return at_clock(Purpose::kHold, best->sm, evidence(*best));
    }
  }
  return at_clock(Purpose::kProbe, *wanted, expectation(search.fit(), *wanted));
}

}  // namespace gpoeo::policy
