// SPDX-License-Identifier: Apache-2.0
// Which of the counted iterations compare with one another, and why others do not: iterations of
// one kind of work (a phase), in runs between two pauses (pause.h). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"

namespace gpoeo::control {

// Iterations one behind the other, between two pauses.
struct IterationRun {
  Instant first_end, last_end;
  std::uint64_t iterations = 0;  // that lie between the two
};

// Where a new run began.
struct RunBreak {
  std::optional<Instant> last_end;  // of the run before, when a pause lies between
  Instant first_end;
};

class CountedWork {
 public:
  // Ends of completed iterations, ascending; the first of a phase only opens its count. Where runs
  // began among them.
  std::vector<RunBreak> add(std::span<const Instant> ends);

  // Iterations from here on are of that phase, known or new. `began`: when, if that was noticed
  // only later; ends of the phase so far, up to a minute back, are then put right. Where runs began
  // among these.
  std::vector<RunBreak> enter_phase(std::size_t phase, std::optional<Instant> began);
  std::size_t phase() const { return current_; }
  // In order of time; between two of them the job did something else.
  std::span<const IterationRun> runs(std::size_t phase) const;

  std::uint64_t iterations() const { return iterations_; }
  // Iterations a second over the last ten seconds before `now`.
  std::optional<double> rate(Instant now) const;

 private:
  std::vector<Instant> take_back(Instant began);

  std::vector<std::vector<IterationRun>> runs_ = std::vector<std::vector<IterationRun>>(1);
  std::size_t current_ = 0;
  bool reopen_run_ = true;  // the next end follows on other work
  std::uint64_t iterations_ = 0;
  std::deque<Instant> recent_ends_;
};

}  // namespace gpoeo::control
