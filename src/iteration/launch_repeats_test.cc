// SPDX-License-Identifier: Apache-2.0
#include "iteration/launch_repeats.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "iteration/testing/launch_programs.h"

namespace gpoeo::iteration {
namespace {

using testing::Program;

LaunchRepeats run(const Program& program, LaunchRepeatsOptions options = {}) {
  LaunchRepeats repeats(options);
  for (const auto& l : program.launches) repeats.push(l.t_ns, l.function_id, l.stream);
  repeats.finish();
  return repeats;
}

void expect_exact(const Program& program) {
  const LaunchRepeats repeats = run(program);
  ASSERT_TRUE(repeats.locked());
  EXPECT_EQ(repeats.iterations(), program.end_ns.size());
}

class LaunchRepeatsSeeds : public ::testing::TestWithParam<int> {
 protected:
  std::uint64_t seed() const { return static_cast<std::uint64_t>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Seeds, LaunchRepeatsSeeds, ::testing::Range(1, 9));

TEST_P(LaunchRepeatsSeeds, CountsNestedRepeatsAndReportsEachLevel) {
  const int micro = 2 + GetParam(), layers = 3 + GetParam();
  const Program program = testing::nested_program(seed(), 40, micro, layers);
  const LaunchRepeats repeats = run(program);
  ASSERT_TRUE(repeats.locked());
  EXPECT_EQ(repeats.iterations(), 40U);
  EXPECT_EQ(repeats.last_end_ns(), program.end_ns.back());
  EXPECT_EQ(repeats.recent_end_ns(), program.end_ns);
  const auto levels = repeats.levels();
  const auto micro_level = std::ranges::find_if(levels, [&](const RepeatLevel& level) {
    return level.iterations == 40U * static_cast<unsigned>(micro);
  });
  EXPECT_NE(micro_level, levels.end()) << "the micro-step is a level of its own";
}

TEST_P(LaunchRepeatsSeeds, CountsThroughOnePercentLostRecords) {
  for (const int micro : {1, 4, 8}) {
    expect_exact(
        testing::drop_launches(testing::nested_program(seed(), 60, micro, 12), seed() + 100, 0.01));
  }
  expect_exact(testing::drop_launches(testing::shaped_program(seed(), 100, 500, 40, 5, 20),
                                      seed() + 200, 0.01));
  expect_exact(testing::drop_launches(testing::interleaved_program(seed(), 100, 3, 80, false),
                                      seed() + 300, 0.01));
}

TEST_P(LaunchRepeatsSeeds, CountsWithRandomShapes) {
  for (const std::uint64_t varying : {10U, 50U, 80U}) {
    expect_exact(testing::shaped_program(seed(), 60, 300, 60, 8, varying));
  }
}

TEST_P(LaunchRepeatsSeeds, CountsInterleavedStreamsToldApartOrNot) {
  for (const bool told : {false, true}) {
    expect_exact(testing::interleaved_program(seed(), 80, 3, 100, told));
  }
}

TEST_P(LaunchRepeatsSeeds, CountsStepsNotValidation) {
  const Program program = testing::validating_program(seed(), 400, 90, 20);
  const LaunchRepeats repeats = run(program);
  ASSERT_TRUE(repeats.locked());
  EXPECT_EQ(repeats.iterations(), 400U);
}

TEST(LaunchRepeats, CountsStepsOfOneLaunch) {
  testing::ProgramWriter w(1);
  for (int i = 0; i < 1000; ++i) {
    w.launch(42);
    w.end_iteration();
  }
  const Program program = w.take();
  const LaunchRepeats repeats = run(program);
  ASSERT_TRUE(repeats.locked());
  EXPECT_EQ(repeats.iterations(), 1000U);
  EXPECT_EQ(repeats.last_end_ns(), program.end_ns.back());
}

TEST(LaunchRepeats, CountsGraphStepsAmongOccasionalOtherLaunches) {
  testing::ProgramWriter w(1);
  for (int i = 0; i < 2000; ++i) {
    w.launch(42);
    if (i % 97 == 50) w.launch(1000 + w.pick(50));
  }
  const LaunchRepeats repeats = run(w.take());
  ASSERT_TRUE(repeats.locked());
  EXPECT_EQ(repeats.iterations(), 2000U);
}

TEST(LaunchRepeats, CountsStepsOf200000Launches) {
  expect_exact(testing::shaped_program(7, 6, 200'000, 200, 1, 0));
  expect_exact(testing::drop_launches(testing::shaped_program(7, 6, 200'000, 200, 1, 0), 8, 0.01));
  expect_exact(testing::nested_program(7, 5, 8, 8000));
}

TEST(LaunchRepeats, CountsAStepInWhichNoKernelIsUnique) {
  testing::ProgramWriter w(1);
  for (int i = 0; i < 300; ++i) {
    for (const std::uint64_t id : {1, 1, 2, 1, 2, 2}) w.launch(id);
    w.end_iteration();
  }
  expect_exact(w.take());
}

// An optimizer makes its state in the first step, with launches that later steps use as marks too.
TEST(LaunchRepeats, AFirstStepWithLaunchesOfItsOwnIsOneStep) {
  for (const int steps : {12, 40, 300}) {
    testing::ProgramWriter w(static_cast<std::uint64_t>(steps));
    for (int i = 0; i < steps; ++i) {
      for (std::uint64_t k = 0; k < 60; ++k) w.launch(100 + k % 47);
      if (i == 0) {
        for (int k = 0; k < 28; ++k) {
          w.launch(7);
          w.launch(110);  // one of the kinds of the step
        }
      }
      for (std::uint64_t k = 0; k < 9; ++k) w.launch(300 + k);
      w.end_iteration();
    }
    expect_exact(w.take());
  }
}

TEST(LaunchRepeats, ALoopThatTakesOverIsCountedFromItsFirstLaunch) {
  testing::ProgramWriter w(3);
  const auto loop = [&](std::uint64_t first, std::uint64_t kinds, int steps) {
    for (int i = 0; i < steps; ++i) {
      for (std::uint64_t k = 0; k < kinds; ++k) w.launch(first + k);
      w.end_iteration();
    }
  };
  loop(1000, 50, 400);
  loop(2000, 80, 300);
  const auto program = w.take();
  LaunchRepeats repeats;
  for (const auto& l : program.launches) repeats.push(l.t_ns, l.function_id, l.stream);
  repeats.finish();
  EXPECT_EQ(repeats.iterations(), 300U);
  EXPECT_EQ(repeats.iterations_in_all(), 700U);
}

TEST(LaunchRepeats, CountsThroughLossesWhenOnlyRunsOfLaunchesMarkTheStep) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    testing::ProgramWriter halves(seed), layers(seed);
    for (int i = 0; i < 200; ++i) {
      for (const std::uint64_t id : {1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 2, 1, 2, 1, 2, 1}) {
        halves.launch(id);
      }
      halves.end_iteration();
      for (std::uint64_t k = 0; k < 12 * 6; ++k) layers.launch(10 + k % 6);
      for (std::uint64_t k = 0; k < 12 * 9; ++k) layers.launch(30 + k % 9);
      for (int k = 0; k < 20; ++k) layers.launch(60);
      layers.end_iteration();
    }
    expect_exact(testing::drop_launches(halves.take(), seed + 10, 0.01));
    expect_exact(testing::drop_launches(layers.take(), seed + 20, 0.01));
  }
}

TEST(LaunchRepeats, ReportsTheStepOfManyEqualPartsAndOneMark) {
  testing::ProgramWriter w(1);
  for (int i = 0; i < 5; ++i) {
    for (std::uint64_t k = 0; k < 199'999; ++k) w.launch(k % 1000);
    w.launch(5000);
  }
  const auto levels = run(w.take()).levels();
  ASSERT_FALSE(levels.empty());
  EXPECT_EQ(levels.back().launches, 200'000);
  EXPECT_EQ(levels.back().iterations, 5U);
}

TEST(LaunchRepeats, IgnoresExtraLaunchesAndTheProgramsStart) {
  testing::ProgramWriter w(3);
  for (std::uint64_t k = 0; k < 500; ++k) w.launch(5000 + k % 100);
  for (int i = 0; i < 200; ++i) {
    for (std::uint64_t k = 0; k < 50; ++k) {
      w.launch(k % 10 == 9 ? 100 + k : k % 6);
      if (w.pick(100) == 0) w.launch(w.pick(6));
    }
    w.end_iteration();
  }
  expect_exact(w.take());
}

TEST(LaunchRepeats, FindsNothingInARandomStream) {
  for (const std::uint64_t kinds : {2U, 10U, 300U, 100'000U}) {
    testing::ProgramWriter w(kinds);
    for (int i = 0; i < 100'000; ++i) w.launch(w.pick(kinds));
    EXPECT_FALSE(run(w.take()).locked()) << kinds << " kinds";
  }
}

TEST(LaunchRepeats, MovesToTheNextLoopAndBack) {
  LaunchRepeats repeats;
  std::int64_t t = 0;
  const auto loop = [&](std::uint64_t first, std::uint64_t length, int times) {
    for (int i = 0; i < times; ++i) {
      for (std::uint64_t k = 0; k < length; ++k) repeats.push(t += 10'000, first + k);
    }
  };
  loop(100, 40, 500);
  EXPECT_EQ(repeats.iterations(), 500U);
  loop(900, 70, 500);
  EXPECT_EQ(repeats.generation(), 1U);
  ASSERT_TRUE(repeats.counted());
  EXPECT_DOUBLE_EQ(repeats.levels()[*repeats.counted()].launches, 70);
  loop(100, 40, 500);
  EXPECT_EQ(repeats.generation(), 2U);
  EXPECT_GE(repeats.iterations(), 995U) << "goes on where it stopped";
}

TEST(LaunchRepeats, HoldsBoundedMemoryOnAnEndlessStream) {
  LaunchRepeatsOptions options;
  options.max_buffered_launches = 1 << 14;
  LaunchRepeats periodic(options), random(options);
  testing::ProgramWriter w(5);
  std::size_t most = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    periodic.push(i * 1000, static_cast<std::uint64_t>(i % 100));
    random.push(i * 1000, w.pick(500));
    most = std::max({most, periodic.memory_bytes(), random.memory_bytes()});
  }
  EXPECT_EQ(periodic.iterations(), 10'000U);
  EXPECT_LT(most, std::size_t{1} << 20);
}

TEST(LaunchRepeats, TakesTimesThatStandStillOrStepBack) {
  LaunchRepeats repeats;
  for (int i = 0; i < 4000; ++i) {
    repeats.push(i % 7 == 0 ? -i : i, static_cast<std::uint64_t>(i % 20));
  }
  EXPECT_EQ(repeats.iterations(), 200U);
}

TEST(LaunchRepeats, IsEmptyBeforeItKnows) {
  LaunchRepeats repeats;
  repeats.finish();
  EXPECT_FALSE(repeats.locked());
  EXPECT_EQ(repeats.iterations(), 0U);
  EXPECT_FALSE(repeats.last_end_ns());
  EXPECT_FALSE(repeats.period_s());
  EXPECT_TRUE(repeats.levels().empty());
  EXPECT_TRUE(repeats.recent_end_ns().empty());
}

}  // namespace
}  // namespace gpoeo::iteration
