// SPDX-License-Identifier: Apache-2.0
// The books of one job: what it used and did, kept while it runs, and closed into the report.
//
// What compares with what is decided in one place for each way of knowing progress: counted
// iterations in runs between pauses (counted_work.h), or, where nothing is counted, time at each
// setting (setting_spans.h). Both become work beside its own baseline, of which claim.h says what
// may be claimed.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "control/claim.h"
#include "control/counted_work.h"
#include "control/energy_timeline.h"
#include "control/setting_spans.h"
#include "policy/policy.h"
#include "report/session.h"

namespace gpoeo::control {

class Ledger {
 public:
  // Energy that one GPU used in a stretch of time. Stretches of a GPU come in order and do not
  // overlap; where they leave a hole nothing is known.
  void add_energy(unsigned gpu, Instant from, Instant to, Joules energy, Joules error) {
    energy_.add(gpu, from, to, energy, error);
  }
  // Ends of completed iterations; the first of a phase only opens its count. Where runs of
  // them began.
  std::vector<RunBreak> add_iteration_ends(std::span<const Instant> ends) {
    return counted_.add(ends);
  }
  // Power traces stand in for counted iterations from here on: what the setting was from when on
  // counts, and that the job was idle.
  void traces_begin(Instant at) { spans_.begin(at); }
  void add_setting(const policy::ClockSetting& setting, Instant at) { spans_.set(setting, at); }
  void add_idle(bool idle, Instant at) { spans_.idle(idle, at); }

  // The work became another (or what is counted did): a new phase with a baseline of its own.
  // `began`: when, if that was noticed only later; ends up to a minute back are then put right.
  // Where runs began among these: energy is to be cut there. What was booked before other work was
  // noticed cannot be cut any more: one stretch of a few seconds may hold both kinds, and is shared
  // out by time.
  std::vector<RunBreak> new_phase(std::optional<Instant> began = std::nullopt);
  // The work of an earlier phase is back: its iterations compare with that phase's baseline.
  std::vector<RunBreak> resume_phase(std::size_t phase, Instant began);
  std::size_t phase() const { return counted_.phase(); }

  void add_observation(const policy::Observation& observation);
  void add_decision(const policy::Decision& decision, double at_s);
  void add_note(std::string note);

  std::uint64_t iterations() const { return counted_.iterations(); }
  // Iterations a second over the last ten seconds before `now`.
  std::optional<double> rate(Instant now) const { return counted_.rate(now); }

  // Fills the job-wide sections of the report.
  void close(report::Session& session) const;

 private:
  bool by_traces() const { return iterations() == 0 && spans_.begun(); }
  void add_pause(Evidence& evidence, Instant from, Instant to) const;
  void add_counted_pauses(Evidence& evidence) const;
  Evidence counted_evidence() const;
  Evidence traced_evidence() const;
  void close_net(report::Session& session) const;
  void close_held(report::Session& session) const;
  void close_search(report::Session& session) const;

  EnergyTimeline energy_;
  CountedWork counted_;
  SettingSpans spans_;
  // Windows of each phase.
  std::vector<std::vector<policy::Observation>> windows_ =
      std::vector<std::vector<policy::Observation>>(1);
  std::vector<report::DecisionLine> decisions_;
  std::vector<policy::Decision> taken_;  // beside decisions_
  std::vector<std::string> notes_;
};

}  // namespace gpoeo::control
