// SPDX-License-Identifier: Apache-2.0
// LaunchRepeats on the structures of real training programs, as generated sequences: what their
// users call an iteration is counted, exactly. The logs of tests/hw/more_loops.py taught them.
#include <gtest/gtest.h>

#include <random>

#include "iteration/launch_repeats.h"
#include "iteration/testing/launch_programs.h"
#include "iteration/turn_counter.h"

namespace gpoeo::iteration {
namespace {

using testing::Program;
using testing::ProgramWriter;

LaunchRepeats run(const Program& program) {
  LaunchRepeats repeats;
  for (const auto& l : program.launches) repeats.push(l.t_ns, l.function_id, l.stream);
  repeats.finish();
  return repeats;
}

std::uint64_t count(const Program& program) { return run(program).iterations_in_all(); }

// `kinds` kernels of their own from `first` on.
void body(ProgramWriter& w, std::uint64_t first, std::uint64_t kinds) {
  for (std::uint64_t k = 0; k < kinds; ++k) w.launch(first + k);
}

// Forward and backward pass of three layers for a shape, then an optimizer that knows no shapes.
void micro_step(ProgramWriter& w, std::uint64_t shape) {
  const std::uint64_t base = 10'000 * (shape + 1);
  body(w, base, 3);
  for (int layer = 0; layer < 3; ++layer) body(w, base + 100, 9);
  for (int layer = 0; layer < 3; ++layer) body(w, base + 200, 16);
  body(w, base + 300, 4);
}
void optimizer(ProgramWriter& w) { body(w, 500, 12); }

class LaunchStructuresSeeds : public ::testing::TestWithParam<int> {
 protected:
  std::uint64_t seed() const { return static_cast<std::uint64_t>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Seeds, LaunchStructuresSeeds, ::testing::Range(1, 5));

TEST(LaunchStructures, TinyStepsWithAValidationOfTheirKernelsOnAnotherGrid) {
  ProgramWriter w(1);
  for (int i = 0; i < 6000; ++i) {
    body(w, 1, 12);
    if (i % 500 != 499) continue;
    for (int v = 0; v < 20; ++v) body(w, 101, 5);
  }
  EXPECT_EQ(count(w.take()), 6000U);
}

TEST(LaunchStructures, LogLinesMakeNoIteration) {
  for (const int every : {10, 20, 50}) {
    ProgramWriter w(1);
    for (int i = 0; i < 1500; ++i) {
      micro_step(w, 0);
      optimizer(w);
      w.pause(5'000'000);
      if (i % every == every - 1) body(w, 700, 3);
    }
    EXPECT_EQ(count(w.take()), 1500U) << "each " << every;
  }
}

TEST(LaunchStructures, AnEpochsLastBatchOfAnotherSizeMakesNoIteration) {
  ProgramWriter w(1);
  for (int i = 0; i < 1000; ++i) {
    const bool last = i % 37 == 36;
    micro_step(w, last ? 1 : 0);
    optimizer(w);
    w.pause(2'000'000);
    if (last) w.launch(700);
  }
  EXPECT_EQ(count(w.take()), 1000U);
}

TEST(LaunchStructures, FoldsWithAValidationEach40Steps) {
  ProgramWriter w(1);
  int steps = 0;
  for (int fold = 0; fold < 8; ++fold) {
    for (int k = 0; k < 20; ++k) w.launch(800 + static_cast<std::uint64_t>(k % 3));
    for (int epoch = 0; epoch < 4; ++epoch) {
      for (int i = 0; i < 40; ++i, ++steps) {
        micro_step(w, 0);
        optimizer(w);
      }
      for (int v = 0; v < 10; ++v) {
        body(w, 10'000, 3);
        for (int layer = 0; layer < 3; ++layer) body(w, 10'100, 9);
        body(w, 900, 3);
      }
    }
  }
  EXPECT_EQ(count(w.take()), static_cast<unsigned>(steps));
}

TEST_P(LaunchStructuresSeeds, MicroStepsByATokenBudget) {
  ProgramWriter w(seed());
  for (int i = 0; i < 400; ++i) {
    for (std::uint64_t tokens = 0; tokens < 32;) {
      const std::uint64_t length = 1 + w.pick(10);
      micro_step(w, length);
      tokens += length;
    }
    optimizer(w);
  }
  EXPECT_EQ(count(w.take()), 400U);
}

TEST_P(LaunchStructuresSeeds, TimeStepsOfVaryingNumber) {
  ProgramWriter w(seed());
  for (int i = 0; i < 400; ++i) {
    const std::uint64_t length = 5 + w.pick(30);
    body(w, 10'000 * length, 2);
    for (std::uint64_t t = 0; t < length; ++t) body(w, 1, 3);
    body(w, 10'000 * length + 10, 7);
    for (std::uint64_t t = 0; t < length; ++t) body(w, 11, 8);
    optimizer(w);
  }
  EXPECT_EQ(count(w.take()), 400U);
}

TEST_P(LaunchStructuresSeeds, ExpertsThatRunOnlyWhenChosen) {
  ProgramWriter w(seed());
  for (int i = 0; i < 400; ++i) {
    body(w, 1, 4);
    for (int expert = 0; expert < 16; ++expert) {
      body(w, 11, 3);
      const std::uint64_t tokens = w.pick(6);
      if (tokens > 0) body(w, 1000 * tokens, 14);
    }
    body(w, 21, 6);
    optimizer(w);
  }
  EXPECT_EQ(count(w.take()), 400U);
}

TEST_P(LaunchStructuresSeeds, StepsOfSeveralKindsThatHaveNothingInCommon) {
  ProgramWriter graphs(seed()), bodies(seed());
  for (int i = 0; i < 1500; ++i) {
    const std::uint64_t size = graphs.pick(4);
    body(graphs, 100 * (size + 1), 2);
    const std::uint64_t kind = bodies.pick(10);
    kind < 4 ? body(bodies, 1000, 90) : kind < 8 ? body(bodies, 2000, 150) : body(bodies, 3000, 40);
  }
  EXPECT_EQ(count(graphs.take()), 1500U);
  EXPECT_EQ(count(bodies.take()), 1500U);
}

TEST(LaunchStructures, ACompilerThatTriesKernelsIsNoTraining) {
  ProgramWriter w(1);
  for (std::uint64_t k = 0; k < 120; ++k) {
    for (int i = 0; i < 9; ++i) w.launch(k % 4 == 3 ? 20 + k % 30 : 20);
    w.launch(21);
  }
  for (int i = 0; i < 4000; ++i) {
    body(w, 1, 5);
    w.pause(1'500'000);
  }
  EXPECT_EQ(count(w.take()), 4000U);
}

TEST(LaunchStructures, ALoopThatReturnsIsCountedWhole) {
  ProgramWriter w(1);
  for (int phase = 0; phase < 8; ++phase) {
    for (int i = 0; i < 150; ++i) {
      phase % 2 == 0 ? body(w, 1000, 200) : body(w, 2000, 140);
    }
  }
  EXPECT_EQ(count(w.take()), 1200U);
}

// It is better to know nothing than to count one of four kinds.
TEST_P(LaunchStructuresSeeds, KindsInNoOrderAreNoIteration) {
  ProgramWriter w(seed());
  for (int i = 0; i < 20'000; ++i) w.launch(w.pick(4));
  EXPECT_FALSE(run(w.take()).locked());
}

TEST(TurnCounter, CountsByOrderThroughLossesAndExtraMarks) {
  TurnCounter counter(5);
  const auto ends = [&](std::initializer_list<std::size_t> marks) {
    int n = 0;
    for (const std::size_t mark : marks) n += counter.on_mark(mark);
    return n;
  };
  EXPECT_EQ(ends({0, 1, 2, 3, 4}), 1);
  EXPECT_EQ(ends({0, 2, 3, 4}), 1) << "one lost";
  EXPECT_EQ(ends({0, 1, 2, 3}), 0) << "the last one lost,";
  EXPECT_EQ(ends({0, 1, 2, 3, 4}), 2) << "which the next first one shows";
  EXPECT_EQ(ends({0, 1, 0, 1, 0, 1}), 0) << "a validation has the first marks only";
  EXPECT_EQ(ends({0, 1, 2, 3, 4}), 1);
  EXPECT_EQ(ends({0, 1, 2, 3}), 0);
  EXPECT_TRUE(counter.on_stream_end()) << "only one can be missing";
  EXPECT_FALSE(counter.on_stream_end());
}

// Whatever comes in whatever order: nothing falls over, and no count falls within a generation.
TEST(LaunchStructures, TwoLoopsAndNoiseInAnyOrder) {
  for (std::uint32_t seed = 1; seed <= 150; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    LaunchRepeats repeats({.max_buffered_launches = std::size_t{1} << (9 + seed % 9)});
    std::int64_t t_ns = 0;
    std::uint64_t counted = 0, generation = repeats.generation();
    const auto push = [&](std::uint64_t id) {
      repeats.push(t_ns += 10'000, id, 0);
      if (repeats.generation() != generation) counted = 0;
      generation = repeats.generation();
      ASSERT_GE(repeats.iterations(), counted) << "seed " << seed;
      counted = repeats.iterations();
    };
    const std::uint32_t kinds[] = {2 + below(80), 2 + below(40)};
    const auto loop = [&](std::uint32_t which, std::uint32_t times) {
      for (std::uint32_t i = 0; i < times; ++i) {
        for (std::uint32_t k = 0; k < kinds[which]; ++k) push(1000 * (which + 1) + k);
      }
    };
    loop(0, 20 + below(60));
    loop(1, 100 + below(400));
    for (std::uint32_t part = 2 + below(30); part-- > 0;) {
      for (std::uint32_t junk = below(4000); junk-- > 0;) push(10'000'000 + random());
      loop(1, below(4));
      if (below(6) == 0) loop(0, 1 + below(6));
    }
    for (int i = 0; i < 5; ++i) loop(0, 5);
    repeats.finish();
  }
}

}  // namespace
}  // namespace gpoeo::iteration
