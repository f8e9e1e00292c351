// SPDX-License-Identifier: Apache-2.0
#include "response/table_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <tuple>

#include "base/text.h"
#include "response/robust.h"

namespace gpoeo::response {
namespace {

constexpr std::size_t kMaxRows = 200'000;
constexpr std::size_t kMaxNameLength = 256;
constexpr std::size_t kMaxColumns = 64;
constexpr std::size_t kMaxLineLength = 16'384;

// What a field may hold. The upper bounds only catch wrong units: no GPU has a 100 GHz clock.
struct Range {
  double above;
  bool including_it;
  double up_to;
  std::string_view cure;
};
constexpr Range kClockRange{0, false, 100'000,
                            "write MHz, 'default' in both clock columns, or nothing"};
constexpr Range kLimitRange{0, false, 100'000, "write watts, or nothing for the card's own limit"};
constexpr Range kTimeRange{0, false, 1e9, "write seconds, or nothing if it was not measured"};
constexpr Range kPowerRange{0, false, 100'000, "write watts, or nothing if it was not measured"};
constexpr Range kFractionRange{0, true, 1, "write a fraction of 1 (percent / 100), or nothing"};
constexpr Range kRateRange{0, true, 1e15, "write bytes per second, or nothing"};

// Where each column stands in a row.
struct Columns {
  std::optional<std::size_t> workload, sm, mem, limit, time, power;
  std::array<std::optional<std::size_t>, kCounterCount> counters;
  std::size_t count = 0;

  std::optional<std::size_t>* find(std::string_view name) {
    if (name == "workload") return &workload;
    if (name == "sm_clock_mhz") return &sm;
    if (name == "mem_clock_mhz") return &mem;
    if (name == "power_limit_w") return &limit;
    if (name == "time_s") return &time;
    if (name == "power_w") return &power;
    for (std::size_t i = 0; i < kCounterCount; ++i) {
      if (name == to_string(static_cast<Counter>(i))) return &counters[i];
    }
    return nullptr;
  }
};

// Where we are, so that every message can say it.
struct Place {
  std::string_view source;
  std::size_t line = 0;

  std::unexpected<Error> error(std::string_view what) const {
    return make_error(ErrorKind::kInvalid, fmt::format("{}:{}: {}", source, line, what));
  }
  std::unexpected<Error> field_error(std::string_view field, std::string_view what) const {
    return error(fmt::format("{}: {}", field, what));
  }
};

std::string known_counters() {
  std::string names;
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    names += fmt::format("{}{}", i == 0 ? "" : ", ", to_string(static_cast<Counter>(i)));
  }
  return names;
}

Result<Columns> parse_header(std::string_view line, const Place& place) {
  Columns columns;
  const auto names = split(line, ',');
  if (names.size() > kMaxColumns) return place.error("the header has too many columns");
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string_view name = trim(names[i]);
    std::optional<std::size_t>* const column = columns.find(name);
    if (column == nullptr) {
      return place.error(fmt::format(
          "unknown column '{}'; columns are workload, sm_clock_mhz, mem_clock_mhz, power_limit_w, "
          "time_s, power_w and the counters {}; rename or remove it",
          printable(name), known_counters()));
    }
    if (column->has_value()) {
      return place.error(fmt::format("column '{}' is there twice; remove one", name));
    }
    *column = i;
  }
  columns.count = names.size();
  const auto missing = [&place](std::string_view name) {
    return place.error(
        fmt::format("the header has no column '{}'; add it (a field may be empty)", name));
  };
  if (!columns.workload) return missing("workload");
  if (!columns.time) return missing("time_s");
  if (!columns.power) return missing("power_w");
  if (!columns.sm && !columns.limit) return missing("sm_clock_mhz");
  return columns;
}

class Row {
 public:
  Row(std::span<const std::string_view> fields, const Place& place)
      : fields_(fields), place_(place) {}

  std::string_view text(const std::optional<std::size_t>& column) const {
    return column ? trim(fields_[*column]) : std::string_view{};
  }

  Result<std::optional<double>> number(const std::optional<std::size_t>& column,
                                       std::string_view name, const Range& range) const {
    const std::string_view field = text(column);
    if (field.empty()) return std::optional<double>();
    const auto value = parse_double(field);
    if (!value) {
      return place_.field_error(
          name, fmt::format("'{}' is not a number; {}", printable(field), range.cure));
    }
    const bool low = range.including_it ? *value < range.above : *value <= range.above;
    if (low || *value > range.up_to) {
      return place_.field_error(
          name, fmt::format("{} is not {} {:g} and at most {:g}; {}", printable(field),
                            range.including_it ? "at least" : "above", range.above, range.up_to,
                            range.cure));
    }
    return std::optional<double>(*value);
  }

  const Place& place() const { return place_; }

 private:
  std::span<const std::string_view> fields_;
  Place place_;
};

Result<Setting> parse_setting(const Row& row, const Columns& columns) {
  Setting setting;
  GPOEO_TRY(setting.power_limit_w, row.number(columns.limit, "power_limit_w", kLimitRange));
  const bool sm_default = row.text(columns.sm) == "default";
  const bool mem_default = row.text(columns.mem) == "default";
  if (sm_default && mem_default) {
    setting.driver_clocks = true;
    return setting;
  }
  if (sm_default || mem_default) {
    return row.place().field_error(
        sm_default ? "mem_clock_mhz" : "sm_clock_mhz",
        "'default' must stand in both clock columns or in none; write it in this one too");
  }
  GPOEO_TRY(setting.sm_mhz, row.number(columns.sm, "sm_clock_mhz", kClockRange));
  GPOEO_TRY(setting.mem_mhz, row.number(columns.mem, "mem_clock_mhz", kClockRange));
  if (!setting.sm_mhz && !setting.power_limit_w) {
    return row.place().field_error(
        "sm_clock_mhz",
        "empty, and so is power_limit_w, so the row does not say what was set; give one of them");
  }
  return setting;
}

Result<std::string> parse_name(const Row& row, const Columns& columns) {
  const std::string_view name = row.text(columns.workload);
  if (name.empty()) return row.place().field_error("workload", "empty; name the workload");
  if (name.size() > kMaxNameLength) {
    return row.place().field_error(
        "workload", fmt::format("longer than {} characters; shorten it", kMaxNameLength));
  }
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '"') {
      return row.place().field_error(
          "workload",
          fmt::format("'{}' has a quote or control character; write it plain", printable(name)));
    }
  }
  return std::string(name);
}

// Mean and scatter of repeats. Of four and more, one that lies far from their median (both 5 % of
// it and six of the standard deviations that the middle half of them would have) is left out: a
// run that something else disturbed. Fewer cannot say which of them is wrong.
class Repeats {
 public:
  void add(const std::optional<double>& value) {
    if (value) values_.push_back(*value);
  }
  // Takes the outliers out; how many.
  int settle() {
    if (values_.size() < 4) return 0;
    const double middle = median(values_);
    std::vector<double> distances;
    for (const double v : values_) distances.push_back(std::abs(v - middle));
    constexpr double kNormal = 1.4826;  // of a median distance to a standard deviation
    const double most =
        std::max(0.05 * std::abs(middle), 6 * kNormal * median(std::move(distances)));
    return static_cast<int>(
        std::erase_if(values_, [&](double v) { return std::abs(v - middle) > most; }));
  }
  std::optional<double> mean() const {
    if (values_.empty()) return std::nullopt;
    return std::accumulate(values_.begin(), values_.end(), 0.0) /
           static_cast<double>(values_.size());
  }
  std::optional<double> scatter() const {
    if (values_.size() < 2) return std::nullopt;
    const double centre = *mean();
    double squares = 0;
    for (const double v : values_) squares += (v - centre) * (v - centre);
    return std::sqrt(squares / static_cast<double>(values_.size() - 1)) / centre;
  }

 private:
  std::vector<double> values_;
};

struct PointRepeats {
  int rows = 0;
  Repeats time, power;
  std::array<Repeats, kCounterCount> counters;
};

struct SettingOrder {
  bool operator()(const Setting& a, const Setting& b) const { return key(a) < key(b); }
  static std::tuple<bool, double, double, double> key(const Setting& s) {
    // No field can be 0, so it can stand for absent inside the key.
    return {s.driver_clocks, s.mem_mhz.value_or(0), s.power_limit_w.value_or(0),
            s.sm_mhz.value_or(0)};
  }
};
using Points = std::map<Setting, PointRepeats, SettingOrder>;

Status add_row(const Row& row, const Columns& columns, Points& points) {
  GPOEO_TRY(const Setting setting, parse_setting(row, columns));
  GPOEO_TRY(const auto time, row.number(columns.time, "time_s", kTimeRange));
  GPOEO_TRY(const auto power, row.number(columns.power, "power_w", kPowerRange));
  if (!time && !power) {
    return row.place().field_error(
        "time_s",
        "empty, and so is power_w, so the row says nothing; fill one in or remove the row");
  }
  std::array<std::optional<double>, kCounterCount> counters;
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    const auto counter = static_cast<Counter>(i);
    GPOEO_TRY(counters[i], row.number(columns.counters[i], to_string(counter),
                                      is_fraction(counter) ? kFractionRange : kRateRange));
  }
  PointRepeats& point = points[setting];
  ++point.rows;
  point.time.add(time);
  point.power.add(power);
  for (std::size_t i = 0; i < kCounterCount; ++i) point.counters[i].add(counters[i]);
  return {};
}

Point to_point(const Setting& setting, PointRepeats& repeats) {
  const int left_out = repeats.time.settle() + repeats.power.settle();
  Point point{.setting = setting,
              .time_s = repeats.time.mean(),
              .power_w = repeats.power.mean(),
              .counters = {},
              .repeats = repeats.rows,
              .left_out = left_out,
              .time_scatter = repeats.time.scatter(),
              .power_scatter = repeats.power.scatter()};
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    point.counters.values[i] = repeats.counters[i].mean();
  }
  return point;
}

}  // namespace

std::string printable(std::string_view s) {
  constexpr std::size_t kLongest = 60;
  std::string out(s.substr(0, kLongest));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  }
  if (s.size() > kLongest) out += "...";
  return out;
}

Result<std::vector<Workload>> collect_rows(std::string_view text, std::string_view source,
                                           std::vector<std::string>& comments) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  Place place{.source = source};
  std::optional<Columns> columns;
  std::vector<std::string> names;
  std::map<std::string, Points> by_name;
  std::size_t rows = 0;
  while (!text.empty()) {
    ++place.line;
    const std::size_t length = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, length));
    text.remove_prefix(std::min(length + 1, text.size()));
    if (line.empty()) continue;
    if (line.size() > kMaxLineLength) {
      return place.error(
          fmt::format("longer than {} characters; this is not a response table", kMaxLineLength));
    }
    if (line.front() == '#') {
      comments.emplace_back(trim(line.substr(1)));
      continue;
    }
    if (!columns) {
      GPOEO_TRY(columns, parse_header(line, place));
      continue;
    }
    const auto fields = split(line, ',');
    if (fields.size() != columns->count) {
      return place.error(
          fmt::format("{} fields, but the header has {}; a field must hold no comma, and a decimal "
                      "point is '.'",
                      fields.size(), columns->count));
    }
    if (++rows > kMaxRows) {
      return place.error(fmt::format("more than {} rows; split the file", kMaxRows));
    }
    const Row row(fields, place);
    GPOEO_TRY(std::string name, parse_name(row, *columns));
    const auto [entry, is_new] = by_name.try_emplace(name);
    if (is_new) names.push_back(std::move(name));
    GPOEO_TRY_STATUS(add_row(row, *columns, entry->second));
  }
  if (!columns || rows == 0) {
    return make_error(ErrorKind::kInvalid,
                      fmt::format("{}: {}; it needs a header line and at least one row", source,
                                  columns ? "no rows below the header" : "empty"));
  }
  std::vector<Workload> workloads;
  for (const std::string& name : names) {
    Workload workload{.name = name, .points = {}, .default_index = 0};
    for (auto& [setting, repeats] : by_name[name]) {
      workload.points.push_back(to_point(setting, repeats));
    }
    workloads.push_back(std::move(workload));
  }
  return workloads;
}

}  // namespace gpoeo::response
