// SPDX-License-Identifier: Apache-2.0
// Counters asked of a process through its ring; the process is the test's.
#include "control/ring_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <limits>

#include "wire/ring_writer.h"

namespace gpoeo::control {
namespace {

using ::testing::HasSubstr;

class Scene {
 public:
  explicit Scene(wire::RingProducer producer = wire::RingProducer::kTwinJob) {
    std::string name = ::testing::TempDir() + "/gpoeo_ring_source_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder = name;
    writer.emplace(std::move(*wire::RingWriter::create(name, producer, 0)));
    progress.emplace(folder);
    source.emplace(*progress);
    writer->push(wire::RecordKind::kStep, to_unix_ns(now), 0, 0);
    progress->poll(now);
  }
  ~Scene() {
    writer.reset();
    std::filesystem::remove_all(folder);
  }
  void answer(wire::CounterBlock block) {
    block.window = writer->mapping().requested_window();
    if (block.end_ns == 0) block.end_ns = 2'000'000'000;
    writer->mapping().publish_counters(block);
  }
  std::optional<Result<CounterReading>> poll() { return source->poll(now, {}, false); }

  std::filesystem::path folder;
  Instant now = instant_from_ns(1'000'000'000'000);
  std::optional<wire::RingWriter> writer;
  std::optional<RingProgress> progress;
  std::optional<RingSource> source;
};

wire::CounterBlock values(std::initializer_list<wire::CounterValue> list) {
  wire::CounterBlock block;
  block.source = wire::CounterSourceId::kPmSampling;
  for (const auto& value : list) block.values[block.count++] = value;
  return block;
}

TEST(RingSource, AsksAndTakesTheAnswer) {
  Scene scene;
  ASSERT_TRUE(scene.source->begin(scene.now, Seconds(0.25)));
  EXPECT_EQ(scene.writer->mapping().requested_window(), 1U);
  EXPECT_GE(scene.writer->mapping().most_window_ns(), 2'000'000'000U);
  EXPECT_FALSE(scene.poll().has_value()) << "not answered yet";

  scene.answer(values({{.metric = 2, .value = 0.8}, {.metric = 9, .value = 5e6}}));
  const auto answer = scene.poll();
  ASSERT_TRUE(answer && *answer);
  EXPECT_EQ((*answer)->activity.sm_active, 0.8);
  EXPECT_EQ((*answer)->activity.pcie_tx_bytes_per_s, 5e6);
  EXPECT_EQ((*answer)->origin, CounterOrigin::kTwinJob);
  EXPECT_NEAR((*answer)->iterations, 8, 1e-9);

  ASSERT_TRUE(scene.source->begin(scene.now, Seconds(0.25)));
  EXPECT_EQ(scene.writer->mapping().requested_window(), 2U);
  EXPECT_FALSE(scene.poll().has_value()) << "the old answer is no answer";
}

TEST(RingSource, SecondsAreTheCountersOwnAndIterationsThoseThatRanMeanwhile) {
  Scene scene;
  ASSERT_TRUE(scene.source->begin(scene.now, Seconds(0.25)));
  // Four passes in 4 s, 3 s of which were counted; iterations take 0.3 s by now. What came before
  // the window (CUPTI being set up) took longer.
  wire::CounterBlock block = values({{.metric = 2, .value = 0.8}});
  block.begin_ns = to_unix_ns(scene.now) + 1'000'000'000;
  block.end_ns = block.begin_ns + 4'000'000'000;
  block.covered_ns = 3'000'000'000;
  block.passes = 4;
  scene.answer(block);
  std::vector<Instant> ends{scene.now + std::chrono::milliseconds(1),
                            scene.now + std::chrono::milliseconds(900)};
  for (int i = 0; i < 20; ++i) ends.push_back(ends[1] + std::chrono::milliseconds(300 * (i + 1)));
  const auto answer = scene.source->poll(scene.now, ends, false);
  ASSERT_TRUE(answer && *answer);
  EXPECT_NEAR((*answer)->counted.value(), 3, 1e-9);
  EXPECT_NEAR((*answer)->iterations, 10, 1e-9);
  EXPECT_NEAR((*answer)->remainder, 0.5 / 2.5, 1e-9) << "a pass was of 2.5 iterations";
}

TEST(RingSource, AProgramThatGoesQuietIsNotWaitedFor) {
  Scene scene;
  ASSERT_TRUE(scene.source->begin(scene.now, Seconds(0.25)));
  scene.writer->set_state(wire::RingState::kQuiet, wire::QuietReason::kSteppedAside);
  EXPECT_FALSE(scene.poll().has_value());
  scene.progress->poll(scene.now);
  const auto answer = scene.poll();
  ASSERT_TRUE(answer && !*answer);
  EXPECT_THAT(answer->error().text, HasSubstr("quiet"));
}

TEST(RingSource, HostileValuesAreLeftOut) {
  Scene scene;
  ASSERT_TRUE(scene.source->begin(scene.now, Seconds(0.25)));
  scene.answer(values({{.metric = 2, .value = 7},
                       {.metric = 5, .value = -0.1},
                       {.metric = 4, .value = std::numeric_limits<double>::quiet_NaN()},
                       {.metric = 4711, .value = 0.5},
                       {.metric = 1, .value = 1.02}}));
  const auto answer = scene.poll();
  ASSERT_TRUE(answer && *answer);
  Activity expected;
  expected.gr_active = 1;
  EXPECT_EQ((*answer)->activity, expected);

  ASSERT_TRUE(scene.source->begin(scene.now, Seconds(0.25)));
  scene.answer(values({{.metric = 2, .value = 7}}));
  EXPECT_FALSE(*scene.poll()) << "nothing is left";
}

TEST(RingSource, EachRefusalSaysWhyAndTheCure) {
  const std::pair<wire::CounterError, const char*> cases[] = {
      {wire::CounterError::kNoPermission, "NVreg_RestrictProfilingToAdminUsers=0"},
      {wire::CounterError::kUnsupported, "cannot tell counters"},
      {wire::CounterError::kBusy, "another profiler"},
      {wire::CounterError::kTooShort, "before a sample"},
      {wire::CounterError::kFailed, "failed with 999"}};
  for (const auto& [error, text] : cases) {
    Scene scene;
    ASSERT_TRUE(scene.source->begin(scene.now, Seconds(0.25)));
    wire::CounterBlock block;
    block.error = error;
    block.detail = 999;
    scene.answer(block);
    const auto answer = scene.poll();
    ASSERT_TRUE(answer && !*answer);
    EXPECT_THAT(answer->error().text, HasSubstr(text));
  }
}

TEST(RingSource, AProcessThatNeverAnswersIsGivenUp) {
  Scene scene;
  ASSERT_TRUE(scene.source->begin(scene.now, Seconds(0.25)));
  scene.now += std::chrono::seconds(60);
  const auto answer = scene.poll();
  ASSERT_TRUE(answer && !*answer);
  EXPECT_THAT(answer->error().text, HasSubstr("no answer"));
  scene.source->cancel();
  EXPECT_EQ(scene.writer->mapping().stopped_window(), 1U);
}

TEST(RingSource, WhoCannotAnswerIsNotAsked) {
  for (const auto producer :
       {wire::RingProducer::kStepMarks, wire::RingProducer::kInjectedLibrary}) {
    Scene other(producer);
    EXPECT_FALSE(other.source->begin(other.now, Seconds(0.25)));
    EXPECT_EQ(other.writer->mapping().requested_window(), 0U);
  }

  Scene quiet;
  quiet.writer->set_state(wire::RingState::kQuiet, wire::QuietReason::kSteppedAside);
  quiet.progress->poll(quiet.now);
  EXPECT_FALSE(quiet.source->begin(quiet.now, Seconds(0.25)));

  RingProgress nobody("/nonexistent");
  RingSource source(nobody);
  EXPECT_FALSE(source.begin(Instant{}, Seconds(0.25)));
}

}  // namespace
}  // namespace gpoeo::control
