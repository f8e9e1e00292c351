// SPDX-License-Identifier: Apache-2.0
#include "asked_setting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/text.h"

namespace gpoeo::app {
namespace {

constexpr double kSameMhz = 0.5;

Result<std::string> check_clock(double mhz, const std::vector<Hertz>& clocks) {
  if (clocks.empty()) return "";
  const double lowest = to_mhz(clocks.front()), highest = to_mhz(clocks.back());
  if (mhz < lowest - kSameMhz || mhz > highest + kSameMhz) {
    return make_error(ErrorKind::kInvalid,
                      fmt::format("policy static:{:g}: this card's SM clocks are {:.0f} to {:.0f} "
                                  "MHz; the nearest is static:{:.0f}",
                                  mhz, lowest, highest, mhz < lowest ? lowest : highest));
  }
  const auto above = std::ranges::lower_bound(clocks, megahertz(mhz - kSameMhz));
  if (above == clocks.end() || to_mhz(*above) <= mhz + kSameMhz) return "";
  const double high = to_mhz(*above), low = to_mhz(*std::prev(above));
  return fmt::format(
      "policy static:{:g}: no SM clock of this card; {:.0f} MHz is held ({:.0f} and "
      "{:.0f} are the nearest)",
      mhz, mhz - low <= high - mhz ? low : high, low, high);
}

}  // namespace

Result<std::string> check_asked_setting(std::string_view policy, const gpu::Capabilities& can) {
  constexpr std::string_view kStatic = "static:", kPower = "power-limit:";
  if (policy.starts_with(kStatic)) {
    GPOEO_TRY(const double mhz, parse_double(policy.substr(kStatic.size())));
    if (can.clocks.empty()) return "";
    return check_clock(mhz, can.sm_clocks());
  }
  if (policy.starts_with(kPower) && can.power_limits) {
    GPOEO_TRY(const double watts, parse_double(policy.substr(kPower.size())));
    const double least = can.power_limits->min.value(), most = can.power_limits->max.value();
    if (watts < least || watts > most) {
      return make_error(
          ErrorKind::kInvalid,
          fmt::format("policy power-limit:{:g}: this card's limit can be {:.0f} to {:.0f} W", watts,
                      least, most));
    }
  }
  return "";
}

}  // namespace gpoeo::app
