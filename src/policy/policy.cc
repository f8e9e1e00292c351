// SPDX-License-Identifier: Apache-2.0
#include "policy/policy.h"

#include <fmt/format.h>

#include "base/text.h"
#include "policy/constrained_search.h"
#include "policy/fixed.h"
#include "policy/measured_search.h"

namespace gpoeo::policy {

std::string to_string(const ClockSetting& setting) {
  if (setting.is_default()) return "default clocks";
  std::string text;
  if (setting.sm) text = fmt::format("SM {:.0f} MHz", to_mhz(*setting.sm));
  if (setting.memory) {
    text += fmt::format("{}memory {:.0f} MHz", text.empty() ? "" : ", ", to_mhz(*setting.memory));
  }
  if (setting.power_limit) {
    text += fmt::format("{}power limit {:.0f} W", text.empty() ? "" : ", ",
                        setting.power_limit->value());
  }
  return text;
}

std::string_view to_string(Purpose purpose) {
  switch (purpose) {
    case Purpose::kBaseline:
      return "baseline";
    case Purpose::kProbe:
      return "search";
    case Purpose::kHold:
      return "hold";
    case Purpose::kLeave:
      return "default";
  }
  return "unknown";
}

Result<std::unique_ptr<Policy>> make_policy(std::string_view name) {
  constexpr std::string_view kStatic = "static:";
  if (name == "gpoeo") return std::make_unique<ConstrainedSearch>();
  if (name == "search") return std::make_unique<MeasuredSearch>();
  if (name == "default") return std::make_unique<DefaultClocks>();
  if (name.starts_with(kStatic)) {
    const auto mhz = parse_double(name.substr(kStatic.size()));
    if (mhz && *mhz > 0) return std::make_unique<StaticClock>(megahertz(*mhz));
    return make_error(ErrorKind::kInvalid,
                      fmt::format("policy '{}': write static:MHz, for example static:1200", name));
  }
  return make_error(ErrorKind::kInvalid,
                    fmt::format("no policy '{}'; there are search, default and static:MHz", name));
}

}  // namespace gpoeo::policy
