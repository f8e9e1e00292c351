// SPDX-License-Identifier: Apache-2.0
#include "policy/candidates.h"

#include <algorithm>
#include <cmath>

namespace gpoeo::policy {
namespace {

constexpr std::size_t kFewestClocks = 3;
constexpr int kPowerSteps = 40;
// Below this share of the highest clock cards behave in ways of their own, and nothing measured
// there ever saved energy.
constexpr double kLowestLevel = 0.3;
// More settings than this are thinned out: neighbours do not differ by anything measurable.
constexpr std::size_t kMostPerLine = 96;

void add_line(std::vector<Candidate>& out, const std::vector<Hertz>& clocks, Hertz top,
              std::optional<Hertz> memory, double gear, std::size_t line) {
  const std::size_t stride = clocks.size() / kMostPerLine + 1;
  for (std::size_t i = 0; i < clocks.size(); i += stride) {
    const Hertz f = clocks[clocks.size() - 1 - i];
    const double level = f / top;
    if (level < kLowestLevel || level > 1) continue;
    if (!memory && level == 1) continue;  // the default itself
    out.push_back(
        {.setting = {.sm = f, .memory = memory}, .level = level, .gear = gear, .line = line});
  }
}

}  // namespace

std::vector<Candidate> candidates_of(const Problem& problem) {
  std::vector<Candidate> out{Candidate{}};
  if (problem.sm_clocks.size() >= kFewestClocks) {
    const Hertz top = problem.sm_clocks.back();
    add_line(out, problem.sm_clocks, top, std::nullopt, 0, 0);
    std::size_t line = 1;
    for (const MemoryGear& gear : problem.memory_gears) {
      if (gear.sm_clocks.size() < kFewestClocks || !problem.default_memory) continue;
      add_line(out, gear.sm_clocks, top, gear.memory,
               std::log(*problem.default_memory / gear.memory), line++);
    }
  } else if (problem.power && problem.power->lowest < problem.power->highest) {
    const PowerLimitRange& range = *problem.power;
    for (int i = 1; i <= kPowerSteps; ++i) {
      const double share = static_cast<double>(i) / kPowerSteps;
      const double watts =
          std::round(range.highest.value() - share * (range.highest - range.lowest).value());
      out.push_back(
          {.setting = {.power_limit = Watts(watts)}, .level = watts / range.highest.value()});
    }
  }
  if (out.size() == 1) out.clear();
  return out;
}

}  // namespace gpoeo::policy
