// SPDX-License-Identifier: Apache-2.0
#include "telemetry/trace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <iterator>

#include "base/log.h"
#include "base/text.h"

namespace gpoeo::telemetry {
namespace {

constexpr std::string_view kHeader =
    "t_us,power_mW,sm_clock_MHz,mem_clock_MHz,gpu_util_pct,mem_util_pct,temp_C,event_reasons\n";
constexpr Duration kFresh = std::chrono::seconds(3);
constexpr Duration kTemperatureFresh = std::chrono::seconds(10);
// 22 s of trace are 1100 rows; a whole day at 50 Hz is 250 MB.
constexpr std::size_t kMostReadBytes = std::size_t{1} << 30;

}  // namespace

TraceWriter::TraceWriter(Fd file, std::filesystem::path path, TraceWriterOptions options)
    : file_(std::move(file)), path_(std::move(path)), options_(options) {
  buffer_ = kHeader;
  bytes_taken_ = buffer_.size();
}

Result<TraceWriter> TraceWriter::create(const std::filesystem::path& path,
                                        TraceWriterOptions options) {
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file) return errno_error(fmt::format("trace file {}: cannot create", path.string()), errno);
  return TraceWriter(std::move(file), path, options);
}

TraceWriter::~TraceWriter() {
  if (file_) write_out();
}

void TraceWriter::merge(const StatusPoint& point) {
  if (point.sm_clock || point.memory_clock || point.reasons) {
    clocks_time_ = point.time;
    known_.sm_clock = point.sm_clock;
    known_.memory_clock = point.memory_clock;
    known_.reasons = point.reasons;
  }
  if (point.utilization) {
    utilization_time_ = point.time;
    known_.utilization = point.utilization;
  }
  if (point.temperature) {
    temperature_time_ = point.time;
    known_.temperature = point.temperature;
  }
}

void TraceWriter::append_new(const History& history) {
  const auto& power = history.power;
  const auto& status = history.status;
  const std::size_t power_from = power.total_pushed() - power.size();
  const std::size_t status_from = status.total_pushed() - status.size();
  status_seen_ = std::max(status_seen_, status_from);
  for (std::size_t i = std::max(power_seen_, power_from); i < power.total_pushed(); ++i) {
    const gpu::PowerSample& sample = power[i - power_from];
    while (status_seen_ < status.total_pushed() &&
           status[status_seen_ - status_from].time <= sample.time) {
      merge(status[status_seen_++ - status_from]);
    }
    TraceRow row{sample, known_};
    if (sample.time - clocks_time_ > kFresh) {
      row.status.sm_clock.reset();
      row.status.memory_clock.reset();
      row.status.reasons.reset();
    }
    if (sample.time - utilization_time_ > kFresh) row.status.utilization.reset();
    if (sample.time - temperature_time_ > kTemperatureFresh) row.status.temperature.reset();
    append(row);
  }
  power_seen_ = power.total_pushed();
}

void TraceWriter::append(const TraceRow& row) {
  if (failed_) {
    ++rows_lost_;
    return;
  }
  const std::size_t before = buffer_.size();
  auto out = std::back_inserter(buffer_);
  fmt::format_to(out, "{},{:.0f},", to_unix_ns(row.sample.time) / 1000,
                 row.sample.power.value() * 1e3);
  const StatusPoint& s = row.status;
  if (s.sm_clock) fmt::format_to(out, "{:.0f}", to_mhz(*s.sm_clock));
  buffer_ += ',';
  if (s.memory_clock) fmt::format_to(out, "{:.0f}", to_mhz(*s.memory_clock));
  buffer_ += ',';
  if (s.utilization) fmt::format_to(out, "{:.0f}", s.utilization->gpu * 100);
  buffer_ += ',';
  if (s.utilization) fmt::format_to(out, "{:.0f}", s.utilization->memory * 100);
  buffer_ += ',';
  if (s.temperature) fmt::format_to(out, "{:.0f}", s.temperature->value());
  buffer_ += ',';
  if (s.reasons) fmt::format_to(out, "{}", s.reasons->bits);
  buffer_ += '\n';
  const std::size_t length = buffer_.size() - before;
  if (bytes_taken_ + length > options_.max_bytes) {
    buffer_.resize(before);
    ++rows_lost_;
    failed_ = Error{ErrorKind::kIo, fmt::format("trace file {}: reached its limit of {} bytes",
                                                path_.string(), options_.max_bytes)};
    log::warning("{}; the run goes on without it", failed_->text);
    return;
  }
  bytes_taken_ += length;
  ++rows_buffered_;
  if (buffer_.size() >= options_.buffer_bytes) write_out();
}

void TraceWriter::write_out() {
  std::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t n = ::write(file_.get(), rest.data(), rest.size());
    if (n >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(n));
      continue;
    }
    if (errno == EINTR) continue;
    failed_ =
        errno_error(fmt::format("trace file {}: cannot write", path_.string()), errno).error();
    log::warning("{}; the run goes on without it", failed_->text);
    rows_lost_ += rows_buffered_;
    rows_buffered_ = 0;
    break;
  }
  rows_written_ += rows_buffered_;
  rows_buffered_ = 0;
  buffer_.clear();
}

Status TraceWriter::flush() {
  if (!buffer_.empty()) write_out();
  if (failed_) return std::unexpected(*failed_);
  return {};
}

namespace {

// The columns this reader knows; where a header has them.
enum Column { kTime, kPower, kSmClock, kMemoryClock, kGpuUtil, kMemUtil, kTemperature, kReasons };
constexpr std::string_view kNames[] = {"t_us",          "power_mW",     "sm_clock_MHz",
                                       "mem_clock_MHz", "gpu_util_pct", "mem_util_pct",
                                       "temp_C",        "event_reasons"};

std::unexpected<Error> bad(std::string_view name, std::size_t line, std::string_view field,
                           std::string_view what) {
  return make_error(ErrorKind::kInvalid, fmt::format("{}:{}: {}: {}", name, line, field, what));
}

// A cell is empty (unknown) or a number in [low, high].
Result<std::optional<double>> cell(std::string_view text, std::string_view name, std::size_t line,
                                   std::string_view field, double low, double high) {
  text = trim(text);
  if (text.empty()) return std::optional<double>();
  const auto value = parse_double(text);
  if (!value || *value < low || *value > high) {
    return bad(name, line, field,
               fmt::format("\"{}\" is not a number from {:g} to {:g}; correct or empty the cell",
                           text, low, high));
  }
  return std::optional<double>(*value);
}

}  // namespace

Result<Trace> parse_trace(std::string_view text, std::string_view name) {
  Trace trace;
  std::vector<std::optional<Column>> columns;
  std::size_t line_number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    ++line_number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const auto cells = split(line, ',');
    if (columns.empty()) {
      if (cells.size() < 2 || trim(cells[0]) != kNames[kTime] || trim(cells[1]) != kNames[kPower]) {
        return bad(name, line_number, "header",
                   "must begin with t_us,power_mW (a trace written by gpoeo does)");
      }
      for (const std::string_view cell_text : cells) {
        std::optional<Column> column;
        for (int c = 0; c <= kReasons; ++c) {
          if (trim(cell_text) == kNames[c]) column = static_cast<Column>(c);
        }
        columns.push_back(column);
      }
      continue;
    }
    if (trim(line).empty() && trim(text).empty()) break;  // an empty last line
    if (cells.size() != columns.size()) {
      return bad(name, line_number, "row",
                 fmt::format("has {} fields, the header has {}; complete or remove the row",
                             cells.size(), columns.size()));
    }
    TraceRow row;
    const auto time_us = parse_int(trim(cells[0]));
    if (!time_us || *time_us < 0 || *time_us > 9'000'000'000'000'000) {
      return bad(name, line_number, kNames[kTime],
                 fmt::format("\"{}\" is not a time in whole microseconds since 1970; correct or "
                             "remove the row",
                             trim(cells[0])));
    }
    row.sample.time = instant_from_ns(*time_us * 1000);
    if (!trace.rows.empty() && row.sample.time <= trace.rows.back().sample.time) {
      return bad(name, line_number, kNames[kTime],
                 "is not later than the row before; sort the rows by time and remove duplicates");
    }
    GPOEO_TRY(const auto power, cell(cells[1], name, line_number, kNames[kPower], 0, 1e8));
    if (!power) {
      return bad(name, line_number, kNames[kPower],
                 "is empty; a row without power is no sample: remove it");
    }
    row.sample.power = Watts(*power * 1e-3);
    for (std::size_t i = 2; i < cells.size(); ++i) {
      if (!columns[i]) continue;
      const Column column = *columns[i];
      const double high = column == kReasons                         ? 9007199254740992.0
                          : column == kGpuUtil || column == kMemUtil ? 100
                          : column == kTemperature                   ? 200
                                                                     : 1e5;
      GPOEO_TRY(const auto value, cell(cells[i], name, line_number, kNames[column],
                                       column == kTemperature ? -100 : 0, high));
      if (!value) continue;
      StatusPoint& s = row.status;
      s.time = row.sample.time;
      switch (column) {
        case kSmClock:
          s.sm_clock = megahertz(*value);
          break;
        case kMemoryClock:
          s.memory_clock = megahertz(*value);
          break;
        case kGpuUtil:
          if (!s.utilization) s.utilization.emplace();
          s.utilization->gpu = *value / 100;
          break;
        case kMemUtil:
          if (!s.utilization) s.utilization.emplace();
          s.utilization->memory = *value / 100;
          break;
        case kTemperature:
          s.temperature = Celsius(*value);
          break;
        case kReasons:
          s.reasons = gpu::EventReasons{static_cast<std::uint64_t>(*value)};
          break;
        case kTime:
        case kPower:
          return bad(name, line_number, kNames[column], "occurs twice in the header; remove one");
      }
    }
    trace.rows.push_back(std::move(row));
  }
  if (columns.empty()) {
    return bad(name, 1, "header", "the file is empty; a trace begins with t_us,power_mW");
  }
  return trace;
}

Result<Trace> read_trace(const std::filesystem::path& path) {
  GPOEO_TRY(const std::string text, read_file(path, kMostReadBytes));
  return parse_trace(text, path.string());
}

}  // namespace gpoeo::telemetry
