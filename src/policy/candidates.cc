// SPDX-License-Identifier: Apache-2.0
#include "policy/candidates.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace gpoeo::policy {
namespace {

constexpr std::size_t kFewestClocks = 3;
constexpr int kPowerSteps = 40;
// Below this share of the default clock cards behave in ways of their own, and nothing measured
// there ever saved energy.
constexpr double kLowestLevel = 0.3;
// More settings than this are thinned out: neighbours do not differ by anything measurable.
constexpr std::size_t kMostPerLine = 96;
// Memory clocks nearer to each other than this are one.
constexpr double kGearStep = 0.08;
// Clocks are sampled; a default that wanders by so little still reaches its highest clock.
constexpr double kReaches = 0.995;

struct Line {
  std::optional<Hertz> memory;
  double gear = 0;
  std::size_t number = 0;
};

void add_line(std::vector<Candidate>& out, const std::vector<Hertz>& clocks, Hertz top,
              const Line& line) {
  const std::size_t stride = clocks.size() / kMostPerLine + 1;
  bool at_top = !line.memory;  // the default line's top is the default itself
  for (std::size_t i = 0; i < clocks.size(); i += stride) {
    const Hertz f = clocks[clocks.size() - 1 - i];
    const bool beyond = f / top >= kReaches;
    // Of the clocks beyond what the card reaches the lowest is as good as any.
    const bool next_beyond =
        i + stride < clocks.size() && clocks[clocks.size() - 1 - i - stride] / top >= kReaches;
    if (beyond && (at_top || next_beyond)) continue;
    const double level = std::min(1.0, f / top);
    if (level < kLowestLevel) break;
    at_top = at_top || beyond;
    out.push_back({.setting = {.sm = f, .memory = line.memory},
                   .level = level,
                   .gear = line.gear,
                   .line = line.number});
  }
}

void add_memory_lines(std::vector<Candidate>& out, const Problem& problem, Hertz top) {
  if (!problem.default_memory) return;
  std::vector<const MemoryGear*> gears;
  for (const MemoryGear& gear : problem.memory_gears) gears.push_back(&gear);
  std::ranges::sort(gears, std::greater{}, &MemoryGear::memory);
  double last = 0;
  std::size_t number = 1;
  for (const MemoryGear* gear : gears) {
    const double depth = std::log(*problem.default_memory / gear->memory);
    if (gear->sm_clocks.size() < kFewestClocks || depth < last + kGearStep) continue;
    add_line(out, gear->sm_clocks, top, {.memory = gear->memory, .gear = depth, .number = number});
    ++number;
    last = depth;
  }
}

void add_power_limits(std::vector<Candidate>& out, const PowerLimitRange& range) {
  for (int i = 1; i <= kPowerSteps; ++i) {
    const double share = static_cast<double>(i) / kPowerSteps;
    const double watts = std::max(
        range.lowest.value(),
        std::round(range.highest.value() - share * (range.highest - range.lowest).value()));
    const auto& last = out.back().setting.power_limit;
    if (watts >= last.value_or(range.highest).value()) continue;  // a range of few watts
    out.push_back(
        {.setting = {.power_limit = Watts(watts)}, .level = watts / range.highest.value()});
  }
}

}  // namespace

std::vector<Candidate> candidates_of(const Problem& problem, std::optional<Hertz> default_sm) {
  std::vector<Candidate> out{Candidate{}};
  if (problem.sm_clocks.size() >= kFewestClocks) {
    const Hertz highest = problem.sm_clocks.back();
    const Hertz top = default_sm ? std::min(*default_sm, highest) : highest;
    add_line(out, problem.sm_clocks, top, {});
    add_memory_lines(out, problem, top);
  } else if (problem.power && problem.power->lowest < problem.power->highest) {
    add_power_limits(out, *problem.power);
  }
  if (out.size() == 1) out.clear();
  return out;
}

std::optional<Hertz> default_sm_clock(std::span<const Observation> observations) {
  double weight = 0, sum = 0;
  for (const Observation& o : observations) {
    if (!o.setting.is_default() || !o.sm_clock || !(o.sm_clock->value() > 0)) continue;
    const double seconds = o.time.value() * static_cast<double>(o.iterations);
    weight += seconds;
    sum += seconds * o.sm_clock->value();
  }
  if (!(weight > 0)) return std::nullopt;
  return Hertz(sum / weight);
}

}  // namespace gpoeo::policy
