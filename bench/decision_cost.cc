// SPDX-License-Identifier: Apache-2.0
// How long one decision of the default policy takes. Prints figures; judges nothing.
// Usage: decision_cost [REPEATS]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/text.h"
#include "policy/candidates.h"
#include "policy/policy.h"

namespace {

using namespace gpoeo;

// `lines` memory clocks with `clocks` SM clocks each.
policy::Problem card(int lines, int clocks) {
  policy::Problem problem{.max_slowdown = 0.05};
  for (int i = 0; i < clocks; ++i)
    problem.sm_clocks.push_back(megahertz(1410 - 12 * (clocks - 1 - i)));
  problem.default_memory = megahertz(9501);
  for (int line = 1; line < lines; ++line) {
    problem.memory_gears.push_back(
        {.memory = megahertz(9501 / std::pow(2, line)), .sm_clocks = problem.sm_clocks});
  }
  return problem;
}

// One window of ten seconds or so at `setting`, noise included.
policy::Observation window(const policy::ClockSetting& setting, double at_s,
                           std::mt19937_64& random) {
  std::normal_distribution<double> noise(0, 0.003);
  const double level = setting.sm ? to_mhz(*setting.sm) / 1410 : 1;
  const double memory = setting.memory ? to_mhz(*setting.memory) / 9501 : 1;
  const double time = (0.6 + 0.3 / level + 0.1 / memory) * (1 + noise(random));
  const double power = 200 * (0.3 + 0.6 * level * level + 0.1 * memory) * (1 + noise(random));
  return {.setting = setting,
          .at = Seconds(at_s),
          .iterations = 10,
          .time = Seconds(time),
          .time_error = Seconds(0.004 * time),
          .energy = Joules(time * power),
          .energy_error = Joules(0.004 * time * power)};
}

// A log as the policy itself would have it after so many windows, but busier: it goes to another
// setting each tenth window.
void measure(const std::string& what, const policy::Problem& problem, int windows, int repeats) {
  const auto candidates = policy::candidates_of(problem, std::nullopt);
  std::mt19937_64 random(1);
  std::vector<policy::Observation> seen;
  for (int i = 0; i < windows; ++i) {
    const std::size_t visit = static_cast<std::size_t>(i / 10);
    const std::size_t k = visit % 6 == 0 ? 0 : 3 + visit * 7 % (candidates.size() / 2);
    seen.push_back(window(candidates[k].setting, 12.0 * i + 6, random));
  }
  const auto gpoeo = policy::make_policy("gpoeo");
  std::vector<double> spent_ms;
  for (int i = 0; i < repeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const policy::Decision decision = (*gpoeo)->decide(problem, seen);
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - begin;
    spent_ms.push_back(spent.count());
    if (decision.why.empty()) fmt::print("no reason given\n");
  }
  std::ranges::sort(spent_ms);
  fmt::print("{:32s} {:4d} settings, {:4d} windows: {:.2f} ms median, {:.2f} ms least\n", what,
             candidates.size(), windows, spent_ms[spent_ms.size() / 2], spent_ms.front());
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? static_cast<int>(parse_double(argv[1]).value_or(200)) : 200;
  if (repeats < 1) {
    fmt::print(stderr, "decision_cost [REPEATS]: at least one\n");
    return 2;
  }
  measure("first look", card(1, 81), 1, repeats);
  measure("one memory clock", card(1, 81), 100, repeats);
  measure("one memory clock, a long job", card(1, 81), 400, repeats);
  measure("three memory clocks, a long job", card(3, 67), 400, repeats);
  return 0;
}
