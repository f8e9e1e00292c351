// SPDX-License-Identifier: Apache-2.0
// LaunchRepeats: launches a second of CPU time, memory, and counts on programs of known structure.
//
// usage: iteration_launches
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <functional>
#include <string>

#include "iteration/launch_repeats.h"
#include "iteration/testing/launch_programs.h"

namespace gpoeo::bench {
namespace {

using iteration::LaunchRepeats;
using iteration::testing::Program;

double cpu_s() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

constexpr std::size_t kMemoryEvery = 1 << 14;

// Speed without the cost of making the launches: the program is made once and played over and over.
// Memory is what the object holds, looked at every kMemoryEvery launches.
void speed(const std::string& name, const Program& program, std::uint64_t launches) {
  LaunchRepeats repeats;
  std::size_t most_memory = 0;
  std::uint64_t pushed = 0;
  std::int64_t offset_ns = 0;
  double used_s = 0;
  while (pushed < launches) {
    const double start_s = cpu_s();
    for (std::size_t i = 0; i < program.launches.size(); ++i) {
      const auto& l = program.launches[i];
      repeats.push(offset_ns + l.t_ns, l.function_id, l.stream);
      if (i % kMemoryEvery == 0) most_memory = std::max(most_memory, repeats.memory_bytes());
    }
    used_s += cpu_s() - start_s;
    offset_ns += program.launches.back().t_ns;
    pushed += program.launches.size();
  }
  fmt::print(
      "{:30} {:5.1f} M launches, {:5.1f} M/s, {} iterations, memory now {:.1f} MB, at most "
      "{:.1f} MB\n",
      name, static_cast<double>(pushed) * 1e-6, static_cast<double>(pushed) * 1e-6 / used_s,
      repeats.iterations(), static_cast<double>(repeats.memory_bytes()) * 1e-6,
      static_cast<double>(most_memory) * 1e-6);
}

Program random_stream(std::size_t launches, std::uint64_t kinds) {
  iteration::testing::ProgramWriter w(1);
  for (std::size_t i = 0; i < launches; ++i) w.launch(w.pick(kinds));
  return w.take();
}

void count(const std::string& name, const std::function<Program(std::uint64_t)>& make, int seeds) {
  int exact = 0, worst = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    const Program program = make(static_cast<std::uint64_t>(seed));
    LaunchRepeats repeats;
    for (const auto& l : program.launches) repeats.push(l.t_ns, l.function_id, l.stream);
    repeats.finish();
    const int off =
        static_cast<int>(repeats.iterations()) - static_cast<int>(program.end_ns.size());
    exact += off == 0;
    if (std::abs(off) > std::abs(worst)) worst = off;
  }
  fmt::print("{:46} exact in {:3} of {:3}{}\n", name, exact, seeds,
             worst == 0 ? "" : fmt::format(", worst {:+}", worst));
}

void counts() {
  using namespace iteration::testing;
  constexpr int kSeeds = 100;
  const auto lossy = [](auto make) {
    return [make](std::uint64_t s) { return drop_launches(make(s), s + 1000, 0.01); };
  };
  const auto nested = [](std::uint64_t s) {
    return nested_program(s, 20 + static_cast<int>(s), 1 + static_cast<int>(s % 9),
                          2 + static_cast<int>(s % 25));
  };
  const auto shaped = [](std::uint64_t s) {
    return shaped_program(s, 40, 100 + 7 * static_cast<int>(s), 20 + s, 1 + s % 10, s % 60);
  };
  const auto interleaved = [](std::uint64_t s) {
    return interleaved_program(s, 60, 3, 30 + 2 * static_cast<int>(s), false);
  };
  const auto told = [](std::uint64_t s) {
    return interleaved_program(s, 60, 3, 30 + 2 * static_cast<int>(s), true);
  };
  const auto validating = [](std::uint64_t s) {
    return validating_program(s, 300 + static_cast<int>(s), 60 + static_cast<int>(s),
                              3 + static_cast<int>(s % 30));
  };
  count("nested repeats", nested, kSeeds);
  count("nested repeats, 1 % lost", lossy(nested), kSeeds);
  count("random shapes", shaped, kSeeds);
  count("random shapes, 1 % lost", lossy(shaped), kSeeds);
  count("3 interleaved streams", interleaved, kSeeds);
  count("3 interleaved streams, 1 % lost", lossy(interleaved), kSeeds);
  count("3 interleaved streams told apart, 1 % lost", lossy(told), kSeeds);
  count("validation between steps", validating, kSeeds);
  count("validation between steps, 1 % lost", lossy(validating), kSeeds);
  count(
      "step of 1 launch",
      [](std::uint64_t s) {
        ProgramWriter w(s);
        for (std::uint64_t i = 0; i < 200 + s; ++i) {
          w.launch(5);
          w.end_iteration();
        }
        return w.take();
      },
      kSeeds);
  const auto huge = [](std::uint64_t s) { return shaped_program(s, 6, 200'000, 200, 1, 0); };
  count("step of 200,000 launches", huge, 3);
  count("step of 200,000 launches, 1 % lost", lossy(huge), 3);
}

}  // namespace
}  // namespace gpoeo::bench

int main() {
  using namespace gpoeo::bench;
  using namespace gpoeo::iteration::testing;
  speed("nested (8 x 24 layers)", nested_program(1, 2000, 8, 24), 20'000'000);
  speed("random shapes, 400 a step", shaped_program(1, 2000, 400, 60, 6, 40), 20'000'000);
  speed("200,000 a step", shaped_program(1, 6, 200'000, 200, 1, 0), 20'000'000);
  speed("nothing repeats", random_stream(3'000'000, 500), 20'000'000);
  counts();
}
