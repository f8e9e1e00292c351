// SPDX-License-Identifier: Apache-2.0
// Trace CSV: one row a power sample, `t_us,power_mW` first, then what else was known at that time
// (`sm_clock_MHz,mem_clock_MHz,gpu_util_pct,mem_util_pct,temp_C,event_reasons`; empty = unknown).
// t_us is microseconds since the Unix epoch, event_reasons NVML's bits as a decimal number.
//
// Thread rule: one thread a writer.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "gpu/types.h"
#include "telemetry/history.h"

namespace gpoeo::telemetry {

struct TraceRow {
  gpu::PowerSample sample;
  StatusPoint status{};  // its time is unused
};

struct TraceWriterOptions {
  std::size_t buffer_bytes = 64 * 1024;  // written out when full, on flush() and at the end
  std::uint64_t max_bytes = std::uint64_t{1} << 30;  // a trace stops there: about 150 h at 50 Hz
};

class TraceWriter {
 public:
  // Creates (or empties) `path` and writes the header.
  static Result<TraceWriter> create(const std::filesystem::path& path,
                                    TraceWriterOptions options = {});
  TraceWriter(TraceWriter&&) = default;
  TraceWriter& operator=(TraceWriter&&) = delete;  // would drop what is buffered
  ~TraceWriter();

  // Appends what `history` has got since the last call, each power sample with what was last read
  // before it: clocks, reasons and utilisation up to 3 s old, temperature up to 10 s.
  void append_new(const History& history);
  void append(const TraceRow& row);
  // A full disk (or any write error) is logged once; from then on rows are counted as lost and
  // nothing else happens: a trace never stops a run. flush() tells.
  Status flush();
  std::uint64_t rows_written() const { return rows_written_; }
  std::uint64_t rows_lost() const { return rows_lost_; }

 private:
  TraceWriter(Fd file, std::filesystem::path path, TraceWriterOptions options);
  void write_out();
  void merge(const StatusPoint& point);

  Fd file_;
  std::filesystem::path path_;
  TraceWriterOptions options_;
  std::string buffer_;
  std::uint64_t bytes_taken_ = 0;
  std::uint64_t rows_buffered_ = 0;
  std::uint64_t rows_written_ = 0;
  std::uint64_t rows_lost_ = 0;
  std::size_t power_seen_ = 0;
  std::size_t status_seen_ = 0;
  StatusPoint known_;  // each field as last read before the sample at hand ...
  Instant clocks_time_{}, utilization_time_{}, temperature_time_{};  // ... and when
  std::optional<Error> failed_;
};

struct Trace {
  std::vector<TraceRow> rows;
};

// Strict: header must begin `t_us,power_mW`; unknown further columns are ignored; times ascend. A
// bad row is kInvalid with file, line, field and cure.
Result<Trace> read_trace(const std::filesystem::path& path);
// The same from text already read; `name` stands for the file in messages.
Result<Trace> parse_trace(std::string_view text, std::string_view name);

}  // namespace gpoeo::telemetry
