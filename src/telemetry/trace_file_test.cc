// SPDX-License-Identifier: Apache-2.0
#include "telemetry/trace_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "telemetry/testing/loop.h"

namespace gpoeo::telemetry {
namespace {

std::filesystem::path temporary(const char* name) {
  return std::filesystem::path(testing::TempDir()) /
         (std::string(name) + "." + std::to_string(::getpid()));
}

TEST(TraceFile, ReadsBackWhatItWrote) {
  const auto path = temporary("trace.csv");
  Loop loop([](double t) { return 300 + 100 * std::sin(t); });
  loop.device.reasons = [](double) { return std::uint64_t{4}; };
  auto writer = TraceWriter::create(path);
  ASSERT_TRUE(writer) << writer.error().text;
  loop.each_poll = [&] { writer->append_new(loop.sampler.history()); };
  loop.run_until(10);
  ASSERT_TRUE(writer->flush());
  const auto trace = read_trace(path);
  ASSERT_TRUE(trace) << trace.error().text;
  const auto& power = loop.sampler.history().power;
  ASSERT_EQ(trace->rows.size(), power.size());
  EXPECT_EQ(writer->rows_written(), power.size());
  for (std::size_t i = 0; i < power.size(); ++i) {
    EXPECT_EQ(to_unix_ns(trace->rows[i].sample.time) / 1000, to_unix_ns(power[i].time) / 1000);
    EXPECT_NEAR(trace->rows[i].sample.power.value(), power[i].power.value(), 0.001);
  }
  const StatusPoint& last = trace->rows.back().status;
  EXPECT_DOUBLE_EQ(to_mhz(last.sm_clock.value()), 1980);
  EXPECT_DOUBLE_EQ(to_mhz(last.memory_clock.value()), 3201);
  EXPECT_DOUBLE_EQ(last.utilization.value().gpu, 0.9);
  EXPECT_DOUBLE_EQ(last.temperature.value().value(), 55);
  EXPECT_EQ(last.reasons.value().bits, 4u);
  // Samples from before the first status say "unknown", not 0.
  EXPECT_FALSE(trace->rows.front().status.sm_clock);
  std::filesystem::remove(path);
}

TEST(TraceFile, DoesNotCarryStaleReadingsOn) {
  const auto path = temporary("stale.csv");
  Loop loop([](double) { return 300.0; });
  loop.device.fault = [&](gpu::Reading r, std::size_t) -> std::optional<Error> {
    if (r == gpu::Reading::kSmClock && loop.device.now_s() > 5)
      return Error{ErrorKind::kIo, "gone"};
    if (r == gpu::Reading::kUtilization && loop.device.now_s() > 5) {
      return Error{ErrorKind::kIo, "gone"};
    }
    return std::nullopt;
  };
  auto writer = TraceWriter::create(path);
  loop.each_poll = [&] { writer->append_new(loop.sampler.history()); };
  loop.run_until(20);
  ASSERT_TRUE(writer->flush());
  const auto trace = read_trace(path);
  ASSERT_TRUE(trace);
  EXPECT_FALSE(trace->rows.back().status.sm_clock);
  EXPECT_FALSE(trace->rows.back().status.utilization);
  EXPECT_TRUE(trace->rows.back().status.memory_clock);
  std::filesystem::remove(path);
}

TEST(TraceFile, AFullDiskIsToldAndStopsNothing) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full on this system";
  TraceWriterOptions options;
  options.buffer_bytes = 256;
  auto writer = TraceWriter::create("/dev/full", options);
  ASSERT_TRUE(writer) << writer.error().text;
  for (int i = 0; i < 1000; ++i) {
    writer->append({{instant_from_ns(1'000'000LL * (i + 1)), Watts(100)}, {}});
  }
  const Status status = writer->flush();
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().text.find("/dev/full"), std::string::npos) << status.error().text;
  EXPECT_EQ(writer->rows_written(), 0u);
  EXPECT_EQ(writer->rows_lost(), 1000u);
}

TEST(TraceFile, StopsAtItsLimit) {
  const auto path = temporary("limit.csv");
  TraceWriterOptions options;
  options.max_bytes = 2000;
  auto writer = TraceWriter::create(path, options);
  for (int i = 0; i < 1000; ++i) {
    writer->append({{instant_from_ns(1'000'000LL * (i + 1)), Watts(100)}, {}});
  }
  EXPECT_FALSE(writer->flush());
  EXPECT_LE(std::filesystem::file_size(path), 2000u);
  EXPECT_EQ(writer->rows_written() + writer->rows_lost(), 1000u);
  const auto trace = read_trace(path);
  ASSERT_TRUE(trace) << trace.error().text;
  EXPECT_EQ(trace->rows.size(), writer->rows_written());
  std::filesystem::remove(path);
}

TEST(TraceFile, CannotCreateNamesThePath) {
  const auto writer = TraceWriter::create("/nonexistent-folder/trace.csv");
  ASSERT_FALSE(writer);
  EXPECT_NE(writer.error().text.find("/nonexistent-folder/trace.csv"), std::string::npos);
}

struct BadTrace {
  const char* text;
  const char* where;  // "name:line: field"
};
class RefusesBadRows : public testing::TestWithParam<BadTrace> {};

TEST_P(RefusesBadRows, WithFileLineFieldAndCure) {
  const auto trace = parse_trace(GetParam().text, "t.csv");
  ASSERT_FALSE(trace) << GetParam().text;
  EXPECT_EQ(trace.error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(trace.error().text.rfind(GetParam().where, 0), 0u) << trace.error().text;
  EXPECT_EQ(trace.error().text.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    TraceFile, RefusesBadRows,
    testing::Values(BadTrace{"", "t.csv:1: header"},
                    BadTrace{"time,power\n1,2\n", "t.csv:1: header"},
                    BadTrace{"power_mW,t_us\n1,2\n", "t.csv:1: header"},
                    BadTrace{"t_us,power_mW\n1,100\n2\n", "t.csv:3: row"},
                    BadTrace{"t_us,power_mW\n1,100\n2,3,4\n", "t.csv:3: row"},
                    BadTrace{"t_us,power_mW\nx,100\n", "t.csv:2: t_us"},
                    BadTrace{"t_us,power_mW\n1.5,100\n", "t.csv:2: t_us"},
                    BadTrace{"t_us,power_mW\n-1,100\n", "t.csv:2: t_us"},
                    BadTrace{"t_us,power_mW\n99999999999999999,100\n", "t.csv:2: t_us"},
                    BadTrace{"t_us,power_mW\n5,100\n5,100\n", "t.csv:3: t_us"},
                    BadTrace{"t_us,power_mW\n5,100\n4,100\n", "t.csv:3: t_us"},
                    BadTrace{"t_us,power_mW\n1,\n", "t.csv:2: power_mW"},
                    BadTrace{"t_us,power_mW\n1,-4\n", "t.csv:2: power_mW"},
                    BadTrace{"t_us,power_mW\n1,nan\n", "t.csv:2: power_mW"},
                    BadTrace{"t_us,power_mW\n1,1e300\n", "t.csv:2: power_mW"},
                    BadTrace{"t_us,power_mW,gpu_util_pct\n1,100,140\n", "t.csv:2: gpu_util_pct"},
                    BadTrace{"t_us,power_mW,sm_clock_MHz\n1,100,fast\n", "t.csv:2: sm_clock_MHz"},
                    BadTrace{"t_us,power_mW,t_us\n1,100,1\n", "t.csv:2: t_us"},
                    BadTrace{"t_us,power_mW\n\n1,100\n", "t.csv:2: row"}));

TEST(TraceFile, TakesForeignColumnsEmptyCellsAndWindowsLineEnds) {
  const auto trace = parse_trace(
      "t_us,power_mW,fan_pct,sm_clock_MHz\r\n1,100000,abc,\r\n2,200000,,1410\r\n", "t.csv");
  ASSERT_TRUE(trace) << trace.error().text;
  ASSERT_EQ(trace->rows.size(), 2u);
  EXPECT_FALSE(trace->rows[0].status.sm_clock);
  EXPECT_DOUBLE_EQ(to_mhz(*trace->rows[1].status.sm_clock), 1410);
  EXPECT_DOUBLE_EQ(trace->rows[1].sample.power.value(), 200);
}

}  // namespace
}  // namespace gpoeo::telemetry
