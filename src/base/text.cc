// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace gpoeo {

std::string_view trim(std::string_view s) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const auto first = s.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return s.substr(first, s.find_last_not_of(kSpace) - first + 1);
}

std::vector<std::string_view> split(std::string_view s, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto at = s.find(separator);
    parts.push_back(s.substr(0, at));
    if (at == std::string_view::npos) return parts;
    s.remove_prefix(at + 1);
  }
}

Result<double> parse_double(std::string_view s) {
  s = trim(s);
  double value = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (s.empty() || error != std::errc{} || end != s.data() + s.size() || !std::isfinite(value)) {
    return make_error(ErrorKind::kInvalid, fmt::format("'{}' is not a number", s));
  }
  return value;
}

Result<long long> parse_int(std::string_view s) {
  s = trim(s);
  long long value = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (s.empty() || error != std::errc{} || end != s.data() + s.size()) {
    return make_error(ErrorKind::kInvalid, fmt::format("'{}' is not a whole number", s));
  }
  return value;
}

Result<double> parse_slowdown_limit(std::string_view s) {
  s = trim(s);
  const auto refuse = [&] {
    return make_error(
        ErrorKind::kInvalid,
        fmt::format("'{}' is not a slow-down limit: write 5%, 0.05 or the factor 1.05", s));
  };
  const bool percent = s.ends_with('%');
  const auto number = parse_double(percent ? s.substr(0, s.size() - 1) : s);
  if (!number) return refuse();
  double limit = *number;
  if (percent) {
    limit /= 100.0;
  } else if (limit >= 1.0 && limit < 2.0) {
    limit -= 1.0;
  }
  if (limit < 0.0 || limit >= 1.0) return refuse();
  return limit;
}

}  // namespace gpoeo
