// SPDX-License-Identifier: Apache-2.0
// A counter answer that is being replaced while it is read. The kernel promises nothing about the
// order in which one pread(2) copies, so that here it is taken apart: the values first, then a
// newer answer is published, then the rest.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>

#include "wire/ring_reader.h"
#include "wire/ring_writer.h"

namespace {

// What happens inside a read of a whole block; empty: nothing.
std::function<void()> g_meanwhile;

ssize_t read_plainly(int file, void* to, std::size_t bytes, off_t offset) {
  return ::syscall(SYS_pread64, file, to, bytes, offset);
}

}  // namespace

// In place of the C library's, in this program.
extern "C" ssize_t pread(int file, void* to, std::size_t bytes, off_t offset) {
  using Block = gpoeo::wire::CounterBlock;
  if (!g_meanwhile || bytes < sizeof(Block) - sizeof(Block::sequence)) {
    return read_plainly(file, to, bytes, offset);
  }
  const std::size_t head = bytes - sizeof(Block::values);
  const ssize_t tail = read_plainly(file, static_cast<char*>(to) + head, sizeof(Block::values),
                                    offset + static_cast<off_t>(head));
  g_meanwhile();
  const ssize_t rest = read_plainly(file, to, head, offset);
  return tail < 0 || rest < 0 ? -1 : tail + rest;
}

namespace gpoeo::wire {
namespace {

CounterBlock block_of(std::uint64_t window) {
  CounterBlock block;
  block.window = window;
  block.count = kMostCounterValues;
  for (auto& value : block.values) value.value = static_cast<double>(window);
  return block;
}

class CounterBlockTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "gpoeo-ring-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    writer_.emplace(RingWriter::create(pattern, RingProducer::kTwinJob, 0, 16).value());
    reader_.emplace(RingReader::open(folder_ / (std::to_string(getpid()) + kRingSuffix)).value());
  }
  void TearDown() override {
    g_meanwhile = nullptr;
    std::filesystem::remove_all(folder_);
  }
  static void expect_whole(const CounterBlock& block) {
    for (const auto& value : block.values) {
      ASSERT_EQ(value.value, static_cast<double>(block.window));
    }
  }

  std::filesystem::path folder_;
  std::optional<RingWriter> writer_;
  std::optional<RingReader> reader_;
};

TEST_F(CounterBlockTest, OneThatIsReplacedWhileItIsReadIsNotTaken) {
  writer_->mapping().publish_counters(block_of(1));
  g_meanwhile = [this] { writer_->mapping().publish_counters(block_of(2)); };
  EXPECT_FALSE(reader_->counters().value());
  g_meanwhile = nullptr;
  const auto block = reader_->counters().value();
  ASSERT_TRUE(block);
  EXPECT_EQ(block->window, 2U);
  expect_whole(*block);
}

TEST_F(CounterBlockTest, UnderAWriterThatNeverRestsEachIsWhole) {
  writer_->mapping().publish_counters(block_of(1));
  std::atomic<bool> stop{false};
  std::thread other([&] {
    for (std::uint64_t window = 2; !stop; ++window) {
      writer_->mapping().publish_counters(block_of(window));
    }
  });
  for (int i = 0; i < 20'000; ++i) {
    const auto block = reader_->counters();
    EXPECT_TRUE(block);
    if (block && *block) expect_whole(**block);
  }
  stop = true;
  other.join();
}

}  // namespace
}  // namespace gpoeo::wire
