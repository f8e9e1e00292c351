// SPDX-License-Identifier: Apache-2.0
// The books of one job: what it used, what it did, what it would have used at default clocks, and
// how sure that is.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "policy/policy.h"
#include "report/session.h"

namespace gpoeo::control {

class Ledger {
 public:
  // Energy that one GPU used in a stretch of time. Stretches of a GPU come in order and do not
  // overlap; where they leave a hole nothing is known.
  void add_energy(unsigned gpu, Instant from, Instant to, Joules energy, Joules error);
  // Ends of completed iterations; the first of a phase only opens its count. A pause
  // (validation, checkpoint, an idle spell) counts as what it was, with nothing saved or lost in
  // it: no baseline holds the like of it.
  void add_iteration_ends(std::span<const Instant> ends);
  // The work became another (or what is counted did): a new phase with a baseline of its own.
  // `began`: when, if that was noticed only later; ends up to a minute back are then put right.
  void new_phase(std::optional<Instant> began = std::nullopt);
  // The work of an earlier phase is back: its iterations compare with that phase's baseline.
  void resume_phase(std::size_t phase, Instant began);
  std::size_t phase() const { return current_; }

  void add_observation(const policy::Observation& observation);
  void add_decision(const policy::Decision& decision, double at_s);
  void add_note(std::string note);

  std::uint64_t iterations() const { return iterations_; }
  // Iterations a second over the last ten seconds before `now`.
  std::optional<double> rate(Instant now) const;

  // Fills the job-wide sections of the report.
  void close(report::Session& session) const;

 private:
  struct Stretch {
    Instant from, to;
    double energy_j, error_j;
  };
  // Iterations one behind the other, between two pauses.
  struct IterationRun {
    Instant first_end, last_end;
    std::uint64_t iterations = 0;
  };
  // Iterations that compare with one another.
  struct Phase {
    std::vector<IterationRun> runs;
    std::vector<policy::Observation> windows;
  };
  struct Baseline {
    report::Figure time_s, energy_j;
    unsigned windows = 0;
    double seconds = 0;
  };
  static std::optional<Baseline> baseline_of(const Phase& phase);
  // Energy of all GPUs between two instants, pro rata at the edges of stretches. A hole is filled
  // with the GPU's mean power around it and widens the error; nullopt when more than a tenth of the
  // time of any GPU is one.
  std::optional<report::Figure> energy_between(Instant from, Instant to) const;
  void enter_phase(std::size_t phase, std::optional<Instant> began);
  void close_net(report::Session& session) const;
  void close_held(report::Session& session) const;
  void close_search(report::Session& session) const;

  std::map<unsigned, std::vector<Stretch>> stretches_;  // by GPU
  std::vector<Phase> phases_ = std::vector<Phase>(1);
  std::size_t current_ = 0;  // of phases_
  bool reopen_run_ = true;   // the next end follows on other work
  std::uint64_t iterations_ = 0;
  std::deque<Instant> recent_ends_;
  std::vector<report::DecisionLine> decisions_;
  std::vector<policy::Decision> taken_;  // beside decisions_
  std::vector<std::string> notes_;
};

}  // namespace gpoeo::control
