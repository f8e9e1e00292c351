// SPDX-License-Identifier: Apache-2.0
// Launch logs of programs whose structure is known, for tests and benchmarks. Seeded; the same on
// every machine.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <vector>

namespace gpoeo::iteration::testing {

struct ProgramLaunch {
  std::int64_t t_ns = 0;
  std::uint64_t function_id = 0;
  std::uint32_t stream = 0;
};

struct Program {
  std::vector<ProgramLaunch> launches;
  std::vector<std::int64_t> end_ns;  // of each iteration: time of its last launch
};

// Collects launches 1 to 50 us apart.
class ProgramWriter {
 public:
  explicit ProgramWriter(std::uint64_t seed) : random_(seed) {}

  void launch(std::uint64_t function_id, std::uint32_t stream = 0) {
    now_ns_ += std::uniform_int_distribution<std::int64_t>(1'000, 50'000)(random_);
    program_.launches.push_back({now_ns_, function_id, stream});
  }
  void end_iteration() { program_.end_ns.push_back(now_ns_); }
  void pause(std::int64_t ns) { now_ns_ += ns; }
  std::uint64_t pick(std::uint64_t choices) {
    return std::uniform_int_distribution<std::uint64_t>(0, choices - 1)(random_);
  }
  Program take() { return std::move(program_); }

 private:
  std::mt19937_64 random_;
  std::int64_t now_ns_ = 0;
  Program program_;
};

// `micro_steps` times (`layers` times three kernels, then a loss), then an optimizer.
inline Program nested_program(std::uint64_t seed, int iterations, int micro_steps, int layers) {
  ProgramWriter w(seed);
  for (int i = 0; i < iterations; ++i) {
    for (int m = 0; m < micro_steps; ++m) {
      for (int l = 0; l < layers; ++l) {
        for (std::uint64_t k = 10; k < 13; ++k) w.launch(k);
      }
      w.launch(20);
    }
    for (std::uint64_t k = 30; k < 35; ++k) w.launch(k);
    w.end_iteration();
  }
  return w.take();
}

// A step of `length` launches of `kernels` kernels in a fixed random order, each with one of
// `shapes` grids drawn anew for `varying` of 100 launches.
inline Program shaped_program(std::uint64_t seed, int iterations, int length, std::uint64_t kernels,
                              std::uint64_t shapes, std::uint64_t varying) {
  ProgramWriter w(seed);
  std::vector<std::uint64_t> body;
  std::vector<bool> varies;
  for (int i = 0; i < length; ++i) {
    body.push_back(w.pick(kernels));
    varies.push_back(w.pick(100) < varying);
  }
  for (int i = 0; i < iterations; ++i) {
    for (std::size_t k = 0; k < body.size(); ++k) {
      w.launch(body[k] * 1000 + (varies[k] ? 1 + w.pick(shapes) : 0));
    }
    w.end_iteration();
  }
  return w.take();
}

// `streams` loops of different kernels, merged in random order inside each iteration.
inline Program interleaved_program(std::uint64_t seed, int iterations, int streams, int length,
                                   bool tell_streams) {
  ProgramWriter w(seed);
  for (int i = 0; i < iterations; ++i) {
    std::vector<int> next(static_cast<std::size_t>(streams), 0);
    for (int left = streams * length; left > 0;) {
      const auto s = static_cast<std::size_t>(w.pick(static_cast<std::uint64_t>(streams)));
      if (next[s] == length) continue;
      // Most kernels occur several times in a step, as they do in layers.
      const std::uint64_t kernel = next[s] % 7 == 3 ? 50 + static_cast<std::uint64_t>(next[s]) : 1;
      w.launch(1000 * (s + 1) + kernel, tell_streams ? static_cast<std::uint32_t>(s + 1) : 0);
      ++next[s];
      --left;
    }
    w.end_iteration();
  }
  return w.take();
}

// Steps, with a validation loop of other kernels each `every` steps.
inline Program validating_program(std::uint64_t seed, int iterations, int every,
                                  int validation_steps) {
  ProgramWriter w(seed);
  for (int i = 0; i < iterations; ++i) {
    for (std::uint64_t k = 0; k < 60; ++k) w.launch(k % 20 == 19 ? 100 + k : k % 7);
    w.end_iteration();
    if ((i + 1) % every != 0) continue;
    for (int v = 0; v < validation_steps; ++v) {
      for (std::uint64_t k = 0; k < 25; ++k) w.launch(k % 12 == 11 ? 200 + k : k % 7);
    }
    w.pause(300'000'000);
  }
  return w.take();
}

// Loses each launch with probability `share`.
inline Program drop_launches(Program program, std::uint64_t seed, double share) {
  std::mt19937_64 random(seed);
  std::bernoulli_distribution lost(share);
  std::erase_if(program.launches, [&](const ProgramLaunch&) { return lost(random); });
  return program;
}

}  // namespace gpoeo::iteration::testing
