// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <thread>

#include "wire/ring_reader.h"
#include "wire/ring_writer.h"

namespace gpoeo::wire {
namespace {

class ProgressRing : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "gpoeo-ring-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ / (std::to_string(getpid()) + kRingSuffix);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  RingWriter make_writer(std::uint32_t capacity, std::int64_t offset_ns = 0) {
    return RingWriter::create(folder_.string(), RingProducer::kTwinJob, offset_ns, capacity)
        .value();
  }
  // Writes raw bytes into the ring's file, as a job gone wild would.
  void scribble(std::size_t offset, std::uint64_t word) {
    const Fd file(open(path_.c_str(), O_WRONLY));
    ASSERT_EQ(pwrite(file.get(), &word, sizeof word, static_cast<off_t>(offset)), 8);
  }

  std::filesystem::path folder_, path_;
};

TEST_F(ProgressRing, RecordsArriveInOrderOnTheCommonTimeline) {
  RingWriter writer = make_writer(64, 1000);
  RingReader reader = RingReader::open(path_).value();
  EXPECT_TRUE(writer.push(RecordKind::kKernelLaunch, 5, 77, 2));
  EXPECT_TRUE(writer.push(RecordKind::kStep, 9, 0, 0));
  std::vector<RingRecord> records;
  ASSERT_TRUE(reader.drain(records));
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].t_ns, 1005);
  EXPECT_EQ(records[0].function_id, 77U);
  EXPECT_EQ(records[0].stream, 2U);
  EXPECT_EQ(records[1].kind, RecordKind::kStep);
}

TEST_F(ProgressRing, WrapsForeverWithoutLoss) {
  RingWriter writer = make_writer(16);
  RingReader reader = RingReader::open(path_).value();
  std::vector<RingRecord> records;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(writer.push(RecordKind::kKernelLaunch, i, 1, 0));
    if (i % 11 == 10) {
      ASSERT_TRUE(reader.drain(records));
    }
  }
  ASSERT_TRUE(reader.drain(records));
  ASSERT_EQ(records.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(records[i].t_ns, i);
  EXPECT_EQ(reader.dropped(), 0U);
}

TEST_F(ProgressRing, FullRingDropsNewRecordsAndCountsThem) {
  RingWriter writer = make_writer(16);
  RingReader reader = RingReader::open(path_).value();
  int kept = 0;
  for (int i = 0; i < 20; ++i) kept += writer.push(RecordKind::kKernelLaunch, i, 1, 0);
  EXPECT_EQ(kept, 16);
  std::vector<RingRecord> records;
  ASSERT_TRUE(reader.drain(records));
  EXPECT_EQ(records.size(), 16U);
  EXPECT_EQ(reader.dropped(), 4U);
  EXPECT_TRUE(writer.push(RecordKind::kKernelLaunch, 99, 1, 0)) << "draining makes room";
}

TEST_F(ProgressRing, AFullRingIsSeenBeforeARecordIsMade) {
  RingWriter writer = make_writer(16);
  RingReader reader = RingReader::open(path_).value();
  for (int i = 0; i < 15; ++i) writer.push(RecordKind::kKernelLaunch, i, 1, 0);
  EXPECT_FALSE(writer.mapping().drop_if_full());
  writer.push(RecordKind::kKernelLaunch, 15, 1, 0);
  EXPECT_TRUE(writer.mapping().drop_if_full());
  std::vector<RingRecord> records;
  ASSERT_TRUE(reader.drain(records));
  EXPECT_EQ(records.size(), 16U);
  EXPECT_EQ(reader.dropped(), 1U);
  EXPECT_FALSE(writer.mapping().drop_if_full()) << "draining makes room";
}

TEST_F(ProgressRing, SeveralThreadsLoseNothing) {
  RingWriter writer = make_writer(1U << 14);
  RingReader reader = RingReader::open(path_).value();
  std::vector<std::thread> threads;
  for (std::uint64_t id = 1; id <= 4; ++id) {
    threads.emplace_back([&writer, id] {
      for (int i = 0; i < 3000; ++i) writer.push(RecordKind::kKernelLaunch, i, id, 0);
    });
  }
  for (auto& thread : threads) thread.join();
  std::vector<RingRecord> records;
  ASSERT_TRUE(reader.drain(records));
  ASSERT_EQ(records.size(), 12000U);
  std::vector<std::int64_t> next(5, 0);
  for (const auto& record : records) EXPECT_EQ(record.t_ns, next[record.function_id]++);
}

TEST_F(ProgressRing, SaysGoodbyeWhenTheWriterEnds) {
  RingReader reader = [&] {
    RingWriter writer = make_writer(16);
    writer.push(RecordKind::kStep, 1, 0, 0);
    return RingReader::open(path_).value();
  }();
  std::vector<RingRecord> records;
  ASSERT_TRUE(reader.drain(records));
  EXPECT_EQ(records.size(), 1U);
  EXPECT_EQ(reader.state(), RingState::kEnded);
}

TEST_F(ProgressRing, StepsOverARecordWhoseProducerWasKilled) {
  RingWriter writer = make_writer(16);
  RingReader reader = RingReader::open(path_).value();
  scribble(kHeadOffset, 1);  // reserved, never published
  writer.push(RecordKind::kStep, 7, 0, 0);
  std::vector<RingRecord> records;
  ASSERT_TRUE(reader.drain(records));
  EXPECT_TRUE(records.empty()) << "first it waits for the producer";
  ASSERT_TRUE(reader.drain(records));
  ASSERT_TRUE(reader.drain(records));
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].t_ns, 7);
  EXPECT_EQ(reader.torn(), 1U);
}

TEST_F(ProgressRing, SaysWhyItIsQuiet) {
  RingWriter writer = make_writer(16);
  RingReader reader = RingReader::open(path_).value();
  writer.mapping().set_cupti_version(130001);
  writer.set_state(RingState::kQuiet, QuietReason::kSteppedAside);
  std::vector<RingRecord> records;
  ASSERT_TRUE(reader.drain(records));
  EXPECT_EQ(reader.state(), RingState::kQuiet);
  EXPECT_EQ(reader.reason(), QuietReason::kSteppedAside);
  EXPECT_EQ(reader.cupti_version(), 130001U);
  scribble(kStateOffset, (777ULL << 32) | 3);
  ASSERT_TRUE(reader.drain(records));
  EXPECT_EQ(reader.reason(), QuietReason::kSteppedAside) << "an unknown number says nothing";
}

TEST_F(ProgressRing, CounterWindowsAreAskedForAndAnswered) {
  RingWriter writer = make_writer(16, 1000);
  RingReader reader = RingReader::open(path_).value();
  EXPECT_FALSE(reader.counters().value());
  EXPECT_EQ(writer.mapping().requested_window(), 0U);
  ASSERT_TRUE(reader.request_counters(3, 500));
  ASSERT_TRUE(reader.stop_counters(2));
  EXPECT_EQ(writer.mapping().requested_window(), 3U);
  EXPECT_EQ(writer.mapping().most_window_ns(), 500U);
  EXPECT_EQ(writer.mapping().stopped_window(), 2U);

  CounterBlock answer;
  answer.window = 3;
  answer.begin_ns = 10;
  answer.end_ns = 20;
  answer.count = 2;
  answer.values[0] = {7, 0, std::numeric_limits<double>::quiet_NaN()};
  answer.values[1] = {8, 0, 0.25};
  writer.mapping().publish_counters(answer);
  const auto block = reader.counters().value();
  ASSERT_TRUE(block);
  EXPECT_EQ(block->window, 3U);
  EXPECT_EQ(block->begin_ns, 1010);
  ASSERT_EQ(block->count, 1U) << "what is no number is left out";
  EXPECT_EQ(block->values[0].metric, 8U);
  EXPECT_EQ(block->values[0].value, 0.25);
}

TEST_F(ProgressRing, AHalfWrittenOrImpossibleCounterAnswerIsNotTaken) {
  RingWriter writer = make_writer(16);
  RingReader reader = RingReader::open(path_).value();
  writer.mapping().publish_counters({});
  scribble(kCountersOffset, 5);
  EXPECT_FALSE(reader.counters().value()) << "odd: being written";
  scribble(kCountersOffset, 6);
  EXPECT_TRUE(reader.counters().value());
  scribble(kCountersOffset + offsetof(CounterBlock, count), 1U << 30);
  EXPECT_FALSE(reader.counters());
  scribble(kCountersOffset + offsetof(CounterBlock, count), 0);
  EXPECT_TRUE(reader.counters());
  scribble(kCountersOffset + offsetof(CounterBlock, covered_ns), 1);
  EXPECT_FALSE(reader.counters()) << "longer than the window";
}

TEST_F(ProgressRing, ImpossibleCountersAreCorruptionNotALoop) {
  RingWriter writer = make_writer(16);
  for (const std::uint64_t head : {std::uint64_t{17}, ~std::uint64_t{0}, std::uint64_t{1} << 63}) {
    RingReader reader = RingReader::open(path_).value();
    scribble(kHeadOffset, head);
    std::vector<RingRecord> records;
    const Status status = reader.drain(records);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::kInvalid);
    EXPECT_TRUE(records.empty());
  }
}

TEST_F(ProgressRing, ATruncatedFileIsAnErrorNotASignal) {
  RingWriter writer = make_writer(1U << 12);
  RingReader reader = RingReader::open(path_).value();
  for (int i = 0; i < 2000; ++i) writer.push(RecordKind::kKernelLaunch, i, 1, 0);
  ASSERT_EQ(truncate(path_.c_str(), 4096), 0);
  std::vector<RingRecord> records;
  EXPECT_FALSE(reader.drain(records));
}

TEST_F(ProgressRing, RefusesWhatIsNoRingAndSaysWhy) {
  RingWriter writer = make_writer(16);
  struct Case {
    std::size_t offset;
    std::uint64_t word;
    const char* why;
  };
  for (const Case& c : {Case{0, 0x1234, "magic"}, Case{8, (32ULL << 32) | 9, "version 9"},
                        Case{8, (48ULL << 32) | 2, "record size"}, Case{16, 15, "capacity"},
                        Case{16, 1U << 10, "shorter"}}) {
    std::uint64_t before = 0;
    const Fd file(open(path_.c_str(), O_RDONLY));
    ASSERT_EQ(pread(file.get(), &before, 8, static_cast<off_t>(c.offset)), 8);
    scribble(c.offset, c.word);
    const auto reader = RingReader::open(path_);
    ASSERT_FALSE(reader) << c.why;
    EXPECT_NE(reader.error().text.find(c.why), std::string::npos) << reader.error().text;
    scribble(c.offset, before);
  }
  EXPECT_TRUE(RingReader::open(path_));
  EXPECT_FALSE(RingReader::open(folder_));
  EXPECT_FALSE(RingReader::open(folder_ / "missing.ring"));
}

}  // namespace
}  // namespace gpoeo::wire
