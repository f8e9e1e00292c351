// SPDX-License-Identifier: Apache-2.0
// What a policy is: from everything measured so far, what to do next. Pure: no clock, no I/O, no
// thread, no device, so that `run`, `bench` and the tests drive the same object.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace gpoeo::policy {

// What is asked of the card: upper bounds for the clocks, and a power limit; nullopt = as the
// driver runs it by default.
struct ClockSetting {
  std::optional<Hertz> sm{};
  std::optional<Hertz> memory{};
  std::optional<Watts> power_limit{};
  bool is_default() const { return !sm && !memory && !power_limit; }
  bool operator==(const ClockSetting&) const = default;
};
std::string to_string(const ClockSetting& setting);

// A memory clock below the default's that may be asked for, and the SM clocks that go with it,
// ascending.
struct MemoryGear {
  Hertz memory;
  std::vector<Hertz> sm_clocks;
};

struct PowerLimitRange {
  Watts lowest;
  Watts highest;  // the card's default limit
};

// What is to be least, within the limit on time. T and E are time and energy per iteration over the
// default clocks'.
enum class Objective {
  kEnergy,  // E
  kEdp,     // E T
  kEd2p,    // E T^2
  kCost,    // eta E + (1 - eta) (P_max / P_default) T, after Zeus (NSDI '23)
};

// What a model expects at one setting, as ratios over default clocks, with standard errors.
struct Prediction {
  ClockSetting setting{};
  double time = 1;
  double time_error = 0;
  double energy = 1;
  double energy_error = 0;
};

// What the user wants, what the card can, and what is expected of the job.
struct Problem {
  std::vector<Hertz> sm_clocks{};          // ascending, at the default memory clock
  std::optional<Hertz> default_memory{};   // the memory clock by default, where it is known
  std::vector<MemoryGear> memory_gears{};  // empty: the memory clock stays as it is
  std::optional<PowerLimitRange> power{};  // nullopt: the power limit stays as it is
  double max_slowdown = 0.05;              // time per iteration over the default's, minus 1
  Objective objective = Objective::kEnergy;
  double most_power_over_default = 1;  // kCost only: the card's limit over mean power
  double cost_eta = 0.5;               // kCost only
  std::vector<Prediction> prior{};     // empty: no model, or no profile yet
};

// One window of whole iterations at one setting.
struct Observation {
  ClockSetting setting{};
  Seconds at;  // middle of the window, since the session's start
  std::size_t iterations = 0;
  Seconds time;        // per iteration
  Seconds time_error;  // its standard error
  Joules energy;       // per iteration
  Joules energy_error;
  std::optional<Hertz> sm_clock{};  // mean over the window, where it could be read
  bool held = true;  // false: the card could not run at what was asked (power or thermal cap)
};

// How long to measure: until the standard error of the iteration time is at most `precision` of
// it (0: whatever it is) and the two minima are met, or `longest` has passed.
struct MeasureGoal {
  std::size_t least_iterations = 8;
  Seconds least{3.0};
  Seconds longest{20.0};
  double precision = 0.003;
};

enum class Purpose {
  kBaseline,  // default clocks, to compare with
  kProbe,     // a clock to learn from
  kHold,      // the clock chosen; measured all the same, so that it can be left
  kLeave,     // default clocks, nothing to gain or to trust
};
std::string_view to_string(Purpose purpose);

struct Decision {
  Purpose purpose = Purpose::kLeave;
  ClockSetting setting{};
  MeasureGoal goal{};
  std::string why;  // one line for the log and the report
};

// Thread rule: const, any thread. The same observations give the same decision.
class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::string_view name() const = 0;
  // `observations` since the job began or last shifted, oldest first.
  virtual Decision decide(const Problem& problem,
                          std::span<const Observation> observations) const = 0;
};

// "energy", "edp", "ed2p" or "cost"; kInvalid lists them.
Result<Objective> parse_objective(std::string_view name);

// "gpoeo" (constrained_search.h), "default", "static:MHz", "power-limit:W" and the rivals
// "gpoeo-paper", "gpoeo-paper:published", "odpp" and "zeus". kInvalid with the list of names for
// anything else.
Result<std::unique_ptr<Policy>> make_policy(std::string_view name);

}  // namespace gpoeo::policy
