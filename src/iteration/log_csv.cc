// SPDX-License-Identifier: Apache-2.0
#include "iteration/log_csv.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <charconv>
#include <memory>
#include <string>

#include "base/text.h"

namespace gpoeo::iteration {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30;
constexpr std::size_t kAbsent = ~std::size_t{0};

Result<std::string> read_text(const std::filesystem::path& path) {
  errno = 0;
  const std::unique_ptr<gzFile_s, decltype(&gzclose)> file(gzopen(path.c_str(), "rb"), &gzclose);
  if (!file) return errno_error(path.string(), errno != 0 ? errno : ENOMEM);
  std::string text;
  std::vector<char> piece(std::size_t{1} << 16);
  for (;;) {
    const int got = gzread(file.get(), piece.data(), static_cast<unsigned>(piece.size()));
    if (got < 0) {
      int code = Z_OK;
      const char* why = gzerror(file.get(), &code);
      if (code == Z_ERRNO) return errno_error(path.string(), errno);
      return make_error(ErrorKind::kInvalid,
                        fmt::format("{}: damaged gzip file: {}", path.string(), why));
    }
    if (got == 0) break;
    text.append(piece.data(), static_cast<std::size_t>(got));
    if (text.size() > kMostBytes) {
      return make_error(ErrorKind::kInvalid,
                        fmt::format("{}: more than 1 GiB of text", path.string()));
    }
  }
  // A gzip file that is cut off reads as a short one, and says so only when closed or asked.
  int code = Z_OK;
  gzerror(file.get(), &code);
  if (code == Z_BUF_ERROR) {
    return make_error(ErrorKind::kInvalid, fmt::format("{}: gzip file is cut off", path.string()));
  }
  return text;
}

// Walks the lines of a CSV text and hands out the fields that were asked for.
class Table {
 public:
  Table(std::string_view text, std::string_view name) : rest_(text), name_(name) {}

  Status read_header() {
    if (!next_line())
      return make_error(ErrorKind::kInvalid, fmt::format("{}: file is empty", name_));
    header_ = split(line_, ',');
    for (std::string_view& column : header_) column = trim(column);
    return {};
  }
  Result<std::size_t> column(std::string_view title) const {
    const std::size_t at = optional_column(title);
    if (at == kAbsent) {
      return make_error(ErrorKind::kInvalid,
                        fmt::format("{}:{}: no column '{}'", name_, number_, title));
    }
    return at;
  }
  std::size_t optional_column(std::string_view title) const {
    for (std::size_t i = 0; i < header_.size(); ++i) {
      if (header_[i] == title) return i;
    }
    return kAbsent;
  }
  // Moves to the next line that is not blank; false at the end.
  bool next_line() {
    while (!rest_.empty()) {
      const auto end = rest_.find('\n');
      line_ = trim(rest_.substr(0, end));
      rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
      ++number_;
      if (!line_.empty()) return true;
    }
    return false;
  }
  Result<std::string_view> field(std::size_t at) const {
    std::string_view rest = line_;
    for (std::size_t i = 0; i < at; ++i) {
      const auto comma = rest.find(',');
      if (comma == std::string_view::npos) return error(at, "is missing");
      rest.remove_prefix(comma + 1);
    }
    return trim(rest.substr(0, rest.find(',')));
  }
  std::unexpected<Error> error(std::size_t at, std::string_view what) const {
    return make_error(ErrorKind::kInvalid,
                      fmt::format("{}:{}: field '{}' {}", name_, number_, header_[at], what));
  }
  Result<double> number(std::size_t at) const {
    GPOEO_TRY(const std::string_view text, field(at));
    const auto value = parse_double(text);
    if (!value) return error(at, value.error().text);
    return *value;
  }
  template <typename Whole>
  Result<Whole> whole(std::size_t at) const {
    GPOEO_TRY(const std::string_view text, field(at));
    Whole value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc{} || end != text.data() + text.size()) {
      return error(at, fmt::format("'{}' is not a whole number in range", text.substr(0, 40)));
    }
    return value;
  }

 private:
  std::string_view rest_, name_, line_;
  std::size_t number_ = 0;
  std::vector<std::string_view> header_;
};

}  // namespace

Result<PowerTrace> parse_trace_csv(std::string_view text, std::string_view name) {
  Table table(text, name);
  GPOEO_TRY_STATUS(table.read_header());
  GPOEO_TRY(const std::size_t time, table.column("t_us"));
  GPOEO_TRY(const std::size_t power, table.column("power_mW"));
  PowerTrace trace;
  double first_us = 0, last_us = 0;
  while (table.next_line()) {
    GPOEO_TRY(const double t_us, table.number(time));
    GPOEO_TRY(const double power_mw, table.number(power));
    if (trace.t_s.empty()) {
      first_us = t_us;
    } else if (t_us <= last_us) {
      return table.error(time, fmt::format("does not rise ({:.0f} after {:.0f})", t_us, last_us));
    }
    last_us = t_us;
    trace.t_s.push_back((t_us - first_us) * 1e-6);
    trace.power_w.push_back(power_mw * 1e-3);
  }
  return trace;
}

Result<std::vector<LaunchRow>> parse_launch_csv(std::string_view text, std::string_view name) {
  Table table(text, name);
  GPOEO_TRY_STATUS(table.read_header());
  GPOEO_TRY(const std::size_t time, table.column("t_ns"));
  GPOEO_TRY(const std::size_t function, table.column("function_id"));
  const std::size_t stream = table.optional_column("stream");
  std::vector<LaunchRow> rows;
  while (table.next_line()) {
    LaunchRow row;
    GPOEO_TRY(row.t_ns, table.whole<std::int64_t>(time));
    GPOEO_TRY(row.function_id, table.whole<std::uint64_t>(function));
    if (stream != kAbsent) {
      GPOEO_TRY(row.stream, table.whole<std::uint32_t>(stream));
    }
    if (!rows.empty() && row.t_ns < rows.back().t_ns) {
      return table.error(time, fmt::format("steps back ({} after {})", row.t_ns, rows.back().t_ns));
    }
    rows.push_back(row);
  }
  return rows;
}

Result<PowerTrace> read_trace_csv(const std::filesystem::path& path) {
  GPOEO_TRY(const std::string text, read_text(path));
  return parse_trace_csv(text, path.string());
}

Result<std::vector<LaunchRow>> read_launch_csv(const std::filesystem::path& path) {
  GPOEO_TRY(const std::string text, read_text(path));
  return parse_launch_csv(text, path.string());
}

}  // namespace gpoeo::iteration
