// SPDX-License-Identifier: Apache-2.0
#include "policy/policy.h"

#include <fmt/format.h>

#include "base/text.h"
#include "policy/constrained_search.h"
#include "policy/fixed.h"
#include "policy/gpoeo_paper.h"
#include "policy/odpp.h"
#include "policy/zeus.h"

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

Result<Objective> parse_objective(std::string_view name) {
  if (name == "energy") return Objective::kEnergy;
  if (name == "edp") return Objective::kEdp;
  if (name == "ed2p") return Objective::kEd2p;
  if (name == "cost") return Objective::kCost;
  return make_error(ErrorKind::kInvalid,
                    fmt::format("no objective '{}'; there are energy, edp, ed2p and cost", name));
}

Result<std::unique_ptr<Policy>> make_policy(std::string_view name) {
  constexpr std::string_view kStatic = "static:";
  if (name == "gpoeo") return std::make_unique<ConstrainedSearch>();
  if (name == "gpoeo-paper") return std::make_unique<GpoeoPaper>();
  if (name == "gpoeo-paper:published") {
    return std::make_unique<GpoeoPaper>(GpoeoPaperOptions{.published_reward = true});
  }
  if (name == "odpp") return std::make_unique<Odpp>();
  if (name == "zeus") return std::make_unique<Zeus>();
  if (name == "default") return std::make_unique<DefaultClocks>();
  if (name.starts_with(kStatic)) {
    const auto mhz = parse_double(name.substr(kStatic.size()));
    if (mhz && *mhz > 0) return std::make_unique<StaticClock>(megahertz(*mhz));
    return make_error(ErrorKind::kInvalid,
                      fmt::format("policy '{}': write static:MHz, for example static:1200", name));
  }
  constexpr std::string_view kPower = "power-limit:";
  if (name.starts_with(kPower)) {
    const auto watts = parse_double(name.substr(kPower.size()));
    if (watts && *watts > 0) return std::make_unique<StaticPowerLimit>(Watts(*watts));
    return make_error(
        ErrorKind::kInvalid,
        fmt::format("policy '{}': write power-limit:W, for example power-limit:250", name));
  }
  return make_error(
      ErrorKind::kInvalid,
      fmt::format("no policy '{}'; there are gpoeo, default, static:MHz, power-limit:W, "
                  "gpoeo-paper, gpoeo-paper:published, odpp and zeus",
                  name));
}

}  // namespace gpoeo::policy
