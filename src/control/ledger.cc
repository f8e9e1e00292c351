// SPDX-License-Identifier: Apache-2.0
#include "control/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "control/pause.h"
#include "policy/estimates.h"

namespace gpoeo::control {
namespace {

constexpr Duration kRateSpan = std::chrono::seconds(10);
// Ends kept so that a change of work that was only noticed later can be put where it began.
constexpr Duration kRecentSpan = std::chrono::seconds(60);
// A job's own wandering between two looks at the same clock (DESIGN section 11), and the card's
// leakage with its temperature, which is not the same early and late: no baseline is surer than
// this, however many windows it has.
constexpr double kDriftSigma = 0.003;
// Leakage grows with temperature: a baseline is measured on a card that has not come to the heat of
// hours at default clocks, and so uses a little less than it would then: 0.1 to 1.5 % less on the
// simulated A100, where the truth is known. The saving is understated by that; how much is not
// known.
constexpr double kThermalError = 0.008;
// The first baseline is measured on a card that has just begun to work: its energy counts only as
// long as there is none that was measured later.
constexpr Seconds kCardIsWarm{60};
constexpr std::size_t kMostNotes = 50;
// Least share of all iterations that a net figure must rest on.
constexpr double kLeastCompared = 0.8;
constexpr std::size_t kHeldWindows = 400;
// Least share of a phase's time whose energy must be known before anything is claimed of it.
constexpr double kLeastCoverage = 0.9;
// Power in a hole may differ from the mean around it by this much (one standard error).
constexpr double kHoleError = 0.3;

double square(double x) { return x * x; }

// Inverse-variance mean.
struct WeightedMean {
  double weights = 0, sum = 0;
  void add(double value, double error) {
    const double w = 1 / (square(error) + 1e-6 * square(value));
    weights += w;
    sum += w * value;
  }
  double mean() const { return sum / weights; }
  double variance() const { return 1 / weights; }
};

}  // namespace

void Ledger::add_energy(unsigned gpu, Instant from, Instant to, Joules energy, Joules error) {
  stretches_[gpu].push_back({from, to, energy.value(), error.value()});
}

void Ledger::add_iteration_ends(std::span<const Instant> ends) {
  auto& runs = phases_[current_].runs;
  for (const Instant end : ends) {
    const bool opens =
        reopen_run_ || runs.empty() ||
        is_pause(runs.back().first_end, runs.back().last_end, runs.back().iterations, end);
    if (opens) {
      reopen_run_ = false;
      runs.push_back({end, end, 0});
    } else {
      ++runs.back().iterations;
      runs.back().last_end = end;
    }
    ++iterations_;
    recent_ends_.push_back(end);
  }
  while (!recent_ends_.empty() && recent_ends_.back() - recent_ends_.front() > kRecentSpan) {
    recent_ends_.pop_front();
  }
}

// As IterationWindow sees it.
void Ledger::new_phase(std::optional<Instant> began) {
  const Phase& now = phases_[current_];
  if (now.runs.empty() && now.windows.empty()) return;
  phases_.emplace_back();
  enter_phase(phases_.size() - 1, began);
}

void Ledger::resume_phase(std::size_t phase, Instant began) {
  if (phase < phases_.size() && phase != current_) enter_phase(phase, began);
}

// Its first end opens a run of its own: between the two the job did other work.
void Ledger::enter_phase(std::size_t phase, std::optional<Instant> began) {
  auto& runs = phases_[current_].runs;
  current_ = phase;
  reopen_run_ = true;
  if (!began) return;
  // The ends since it began are the new phase's: taken from the old one and given again.
  const auto first = std::ranges::lower_bound(recent_ends_, *began);
  const std::vector<Instant> moved(first, recent_ends_.end());
  if (moved.empty() || runs.empty() || first == recent_ends_.begin()) return;
  IterationRun& run = runs.back();
  if (run.first_end >= moved.front() || run.iterations < moved.size()) return;
  run.iterations -= moved.size();
  run.last_end = *(first - 1);
  recent_ends_.erase(first, recent_ends_.end());
  iterations_ -= moved.size();
  add_iteration_ends(moved);
}

void Ledger::add_observation(const policy::Observation& observation) {
  phases_[current_].windows.push_back(observation);
}

void Ledger::add_decision(const policy::Decision& decision, double at_s) {
  decisions_.push_back({.at_s = at_s,
                        .purpose = std::string(policy::to_string(decision.purpose)),
                        .setting = policy::to_string(decision.setting),
                        .why = decision.why});
  taken_.push_back(decision);
}

void Ledger::add_note(std::string note) {
  if (notes_.size() < kMostNotes && std::ranges::find(notes_, note) == notes_.end()) {
    notes_.push_back(std::move(note));
  }
}

std::optional<double> Ledger::rate(Instant now) const {
  const auto first =
      std::ranges::find_if(recent_ends_, [&](Instant end) { return now - end <= kRateSpan; });
  const auto count = std::distance(first, recent_ends_.end());
  if (count < 2) return std::nullopt;
  return static_cast<double>(count - 1) / to_seconds(recent_ends_.back() - *first).value();
}

std::optional<report::Figure> Ledger::energy_between(Instant from, Instant to) const {
  const double span = to_seconds(to - from).value();
  if (span <= 0 || stretches_.empty()) return std::nullopt;
  double energy = 0, variance = 0;
  for (const auto& [gpu, stretches] : stretches_) {
    double known = 0, known_variance = 0, covered = 0;
    const auto begin = std::ranges::upper_bound(stretches, from, {}, &Stretch::to);
    for (const Stretch& s : std::ranges::subrange(begin, stretches.end())) {
      if (s.from >= to) break;
      const Instant a = std::max(s.from, from), b = std::min(s.to, to);
      const double share = to_seconds(b - a) / to_seconds(s.to - s.from);
      known += share * s.energy_j;
      known_variance += square(share * s.error_j);
      covered += to_seconds(b - a).value();
    }
    if (covered < kLeastCoverage * span) return std::nullopt;
    const double filled = known * (span - covered) / covered;
    energy += known + filled;
    variance += known_variance + square(kHoleError * filled);
  }
  return report::Figure{energy, std::sqrt(variance)};
}

std::optional<Ledger::Baseline> Ledger::baseline_of(const Phase& phase) {
  Baseline baseline;
  WeightedMean time, energy;
  const auto is_warm = [](const policy::Observation& w) {
    return w.setting.is_default() && w.at > kCardIsWarm;
  };
  const bool warm_one = std::ranges::any_of(phase.windows, is_warm);
  for (const auto& w : phase.windows) {
    if (!w.setting.is_default()) continue;
    ++baseline.windows;
    baseline.seconds += w.time.value() * static_cast<double>(w.iterations);
    time.add(w.time.value(), w.time_error.value());
    if (warm_one && !is_warm(w)) continue;
    energy.add(w.energy.value(), w.energy_error.value());
  }
  if (baseline.windows == 0) return std::nullopt;
  const auto with_drift = [&](const WeightedMean& m) {
    return report::Figure{m.mean(), std::sqrt(m.variance() + square(kDriftSigma * m.mean()))};
  };
  baseline.time_s = with_drift(time);
  baseline.energy_j = with_drift(energy);
  baseline.energy_j.error =
      std::hypot(baseline.energy_j.error, kThermalError * baseline.energy_j.value);
  return baseline;
}

void Ledger::close(report::Session& session) const {
  session.iterations = iterations_;
  session.decisions = decisions_;
  session.notes.insert(session.notes.end(), notes_.begin(), notes_.end());
  close_net(session);
  close_held(session);
  close_search(session);
}

// Net: what the counted iterations used against what as many would have used at default clocks.
void Ledger::close_net(report::Session& session) const {
  double energy = 0, energy_variance = 0, time = 0;
  double default_energy = 0, default_energy_error = 0, default_time = 0, default_time_error = 0;
  double pause_energy = 0, pause_time = 0;
  std::uint64_t compared = 0;
  for (const Phase& phase : phases_) {
    const auto baseline = baseline_of(phase);
    if (!baseline) continue;
    session.baseline = report::BaselineSection{.time_s = baseline->time_s,
                                               .energy_j = baseline->energy_j,
                                               .windows = baseline->windows,
                                               .seconds = baseline->seconds};
    for (const IterationRun& run : phase.runs) {
      if (run.iterations == 0) continue;
      const auto used = energy_between(run.first_end, run.last_end);
      if (!used) continue;
      const auto n = static_cast<double>(run.iterations);
      compared += run.iterations;
      energy += used->value;
      energy_variance += square(used->error);
      time += to_seconds(run.last_end - run.first_end).value();
      default_energy += n * baseline->energy_j.value;
      default_energy_error += n * baseline->energy_j.error;
      default_time += n * baseline->time_s.value;
      default_time_error += n * baseline->time_s.error;
    }
    for (std::size_t i = 1; i < phase.runs.size(); ++i) {
      const Instant from = phase.runs[i - 1].last_end, to = phase.runs[i].first_end;
      pause_energy += energy_between(from, to).value_or(report::Figure{}).value;
      pause_time += to_seconds(to - from).value();
    }
  }
  if (!session.baseline) {
    session.no_saving_reason =
        iterations_ < 2 ? "no iterations were seen, so there is nothing to compare"
                        : "the job ended before a baseline at default clocks was measured";
    return;
  }
  if (default_energy <= 0) {
    session.no_saving_reason = "the energy of too much of the time could not be read";
    return;
  }
  if (static_cast<double>(compared) < kLeastCompared * static_cast<double>(iterations_)) {
    session.no_saving_reason = fmt::format(
        "only {} of {} iterations have a baseline to be compared with", compared, iterations_);
    return;
  }
  const double ratio = energy / default_energy, slowdown = time / default_time;
  const double energy_error = ratio * std::hypot(std::sqrt(energy_variance) / energy,
                                                 default_energy_error / default_energy);
  // Pauses count as what they were: nothing saved in them, nothing lost.
  const double energy_share = default_energy / (default_energy + pause_energy);
  const double time_share = default_time / (default_time + pause_time);
  session.saving = report::SavingSection{
      .net_saving = {(1 - ratio) * energy_share, energy_error * energy_share},
      .net_slowdown = {(slowdown - 1) * time_share,
                       slowdown * default_time_error / default_time * time_share},
      .held_saving = {},
      .held_slowdown = {}};
}

void Ledger::close_held(report::Session& session) const {
  const auto last_hold = std::ranges::find_if(taken_.rbegin(), taken_.rend(), [](const auto& d) {
    return d.purpose == policy::Purpose::kHold;
  });
  if (last_hold == taken_.rend()) return;
  const policy::ClockSetting& held = last_hold->setting;
  if (held.sm) session.held_sm_mhz = to_mhz(*held.sm);
  if (held.memory) session.held_memory_mhz = to_mhz(*held.memory);
  if (held.power_limit) session.held_power_limit_w = held.power_limit->value();
  // The newest windows only: their number times that of the baselines is what this costs.
  const std::span<const policy::Observation> windows = phases_[current_].windows;
  const auto estimates = policy::estimate(windows.last(std::min(windows.size(), kHeldWindows)));
  if (!estimates || !session.saving) return;
  for (const auto& e : estimates->settings) {
    if (e.setting != last_hold->setting) continue;
    session.saving->held_saving = report::Figure{
        1 - e.energy_ratio, std::hypot(e.energy_error, kThermalError * e.energy_ratio)};
    session.saving->held_slowdown = report::Figure{e.time_ratio - 1, e.time_error};
  }
}

void Ledger::close_search(report::Session& session) const {
  for (std::size_t i = 0; i < taken_.size(); ++i) {
    const double until = i + 1 < taken_.size() ? decisions_[i + 1].at_s : session.duration_s;
    if (taken_[i].purpose == policy::Purpose::kHold) {
      if (!session.time_to_hold_s) session.time_to_hold_s = decisions_[i].at_s;
    } else if (taken_[i].purpose != policy::Purpose::kLeave) {
      session.exploring_s += until - decisions_[i].at_s;
    }
  }
}

}  // namespace gpoeo::control
