// SPDX-License-Identifier: Apache-2.0
#include "control/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "control/work_baseline.h"
#include "policy/estimates.h"

namespace gpoeo::control {
namespace {

constexpr std::size_t kMostNotes = 50;
constexpr std::size_t kHeldWindows = 400;
// What a comparison of two traces may be off by beyond its own interval, relative: set so that nine
// in ten claims of bench/claims --traces hold the truth.
constexpr double kTraceDoubt = 0.005;

double seconds_of(Duration d) { return to_seconds(d).value(); }

// Energies of spans that compare, added up; their errors are independent.
void add(report::Figure& sum, const report::Figure& more) {
  sum.value += more.value;
  sum.error = std::hypot(sum.error, more.error);
}

}  // namespace

std::vector<RunBreak> Ledger::new_phase(std::optional<Instant> began) {
  if (counted_.runs(phase()).empty() && windows_[phase()].empty()) return {};
  windows_.emplace_back();
  const std::size_t added = windows_.size() - 1;
  if (began) spans_.enter_phase(added, *began);
  return counted_.enter_phase(added, began);
}

std::vector<RunBreak> Ledger::resume_phase(std::size_t phase, Instant began) {
  if (phase >= windows_.size() || phase == counted_.phase()) return {};
  spans_.enter_phase(phase, began);
  return counted_.enter_phase(phase, began);
}

void Ledger::add_observation(const policy::Observation& observation) {
  windows_[phase()].push_back(observation);
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

void Ledger::close(report::Session& session) const {
  session.iterations = iterations();
  session.decisions = decisions_;
  session.notes.insert(session.notes.end(), notes_.begin(), notes_.end());
  close_net(session);
  close_held(session);
  close_search(session);
}

void Ledger::add_pause(Evidence& evidence, Instant from, Instant to) const {
  const auto used = energy_.assumed_between(from, to);
  evidence.pause_energy_j += used.value;
  // Pauses are alike: what is assumed of them is off to the same side.
  evidence.pause_energy_error_j += used.error;
  evidence.pause_time_s += seconds_of(to - from);
}

// What lies between two runs of one phase with none that compares between them: a pause, or work
// without a baseline. Between runs of two phases lies the iteration that changed, nobody's.
void Ledger::add_counted_pauses(Evidence& evidence) const {
  struct PhaseRun {
    std::size_t phase;
    IterationRun run;
  };
  std::vector<PhaseRun> all;
  for (std::size_t phase = 0; phase < windows_.size(); ++phase) {
    if (!baseline_of(windows_[phase])) continue;
    for (const IterationRun& run : counted_.runs(phase)) all.push_back({phase, run});
  }
  std::ranges::sort(all, {}, [](const PhaseRun& r) { return r.run.first_end; });
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i - 1].phase != all[i].phase) continue;
    add_pause(evidence, all[i - 1].run.last_end, all[i].run.first_end);
  }
}

// Counted iterations of each phase that has a baseline and whose energy is known.
Evidence Ledger::counted_evidence() const {
  Evidence evidence;
  std::uint64_t compared = 0;
  for (std::size_t phase = 0; phase < windows_.size(); ++phase) {
    const auto baseline = baseline_of(windows_[phase]);
    if (!baseline) continue;
    ComparedWork work{.baseline = *baseline, .iterations = {}, .time_s = 0, .energy_j = {}};
    for (const IterationRun& run : counted_.runs(phase)) {
      const auto used = energy_.between(run.first_end, run.last_end);
      if (!used) continue;
      compared += run.iterations;
      work.iterations.value += static_cast<double>(run.iterations);
      work.time_s += seconds_of(run.last_end - run.first_end);
      add(work.energy_j, *used);
    }
    evidence.work.push_back(work);
  }
  add_counted_pauses(evidence);
  evidence.compared_share = static_cast<double>(compared) / static_cast<double>(iterations());
  evidence.of_all = fmt::format("{} of {} iterations", compared, iterations());
  return evidence;
}

// Time at each setting of each phase, over how long an iteration takes there.
Evidence Ledger::traced_evidence() const {
  Evidence evidence;
  double compared_s = 0, all_s = 0;
  const auto spans = spans_.until(energy_.known_to().value_or(Instant{}));
  for (std::size_t phase = 0; phase < windows_.size(); ++phase) {
    const auto baseline = baseline_of(windows_[phase]);
    ComparedWork work;
    if (baseline) work.baseline = *baseline;
    // What the time at one setting is off by, all spans there are off by together.
    std::map<std::string, double> iterations_off;
    for (const SettingSpan& span : spans) {
      if (span.phase != phase || span.to <= span.from) continue;
      if (span.idle) {
        add_pause(evidence, span.from, span.to);
        continue;
      }
      const auto used = energy_.between(span.from, span.to);
      const double span_s = seconds_of(span.to - span.from);
      all_s += span_s;
      if (!baseline || !used) continue;
      // At default clocks the baseline's own time cancels.
      const auto time = span.setting.is_default()
                            ? report::Figure{baseline->time_s.value, 0}
                            : time_at(windows_[phase], span.setting).value_or(report::Figure{});
      if (time.value <= 0) continue;
      compared_s += span_s;
      const double iterations = span_s / time.value;
      work.iterations.value += iterations;
      if (!span.setting.is_default()) {
        iterations_off[policy::to_string(span.setting)] +=
            iterations * std::hypot(time.error / time.value, kTraceDoubt);
      }
      work.time_s += span_s;
      add(work.energy_j, *used);
    }
    if (!baseline) continue;
    for (const auto& [setting, off] : iterations_off) {
      work.iterations.error = std::hypot(work.iterations.error, off);
    }
    evidence.work.push_back(work);
  }
  evidence.compared_share = all_s > 0 ? compared_s / all_s : 0;
  evidence.of_all = fmt::format("{:.0f} s of {:.0f} s", compared_s, all_s);
  return evidence;
}

// Net: what the work used against what as much would have used at default clocks.
void Ledger::close_net(report::Session& session) const {
  const Evidence evidence = by_traces() ? traced_evidence() : counted_evidence();
  if (evidence.work.empty()) {
    session.no_saving_reason =
        iterations() < 2 && !by_traces()
            ? "no iterations were seen, so there is nothing to compare"
            : "the job ended before a baseline at default clocks was measured";
    return;
  }
  session.baseline = evidence.work.back().baseline;
  Claim claimed = claim(evidence);
  session.saving = claimed.saving;
  session.no_saving_reason = std::move(claimed.why_not);
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
  const std::span<const policy::Observation> windows = windows_[phase()];
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
