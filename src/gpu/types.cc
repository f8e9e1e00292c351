// SPDX-License-Identifier: Apache-2.0
#include "gpu/types.h"

#include <utility>

namespace gpoeo::gpu {

std::string_view to_string(Reading reading) {
  switch (reading) {
    case Reading::kPowerSamples:
      return "power samples";
    case Reading::kPowerInstant:
      return "instant power";
    case Reading::kPowerAverage:
      return "average power";
    case Reading::kEnergyCounter:
      return "energy counter";
    case Reading::kSmClock:
      return "SM clock";
    case Reading::kMemoryClock:
      return "memory clock";
    case Reading::kUtilization:
      return "utilisation";
    case Reading::kTemperature:
      return "temperature";
    case Reading::kEventReasons:
      return "clock event reasons";
    case Reading::kCounters:
      return "activity counters (GPM)";
    case Reading::kProcesses:
      return "compute processes";
    case Reading::kCount:
      break;
  }
  return "unknown reading";
}

std::string_view to_string(Control control) {
  switch (control) {
    case Control::kSmClocks:
      return "SM clocks";
    case Control::kMemoryClocks:
      return "memory clocks";
    case Control::kPowerLimit:
      return "power limit";
    case Control::kCount:
      break;
  }
  return "unknown control";
}

std::string_view to_string(Support support) {
  switch (support) {
    case Support::kYes:
      return "yes";
    case Support::kNo:
      return "not supported";
    case Support::kNoPermission:
      return "no permission";
    case Support::kUnknown:
      return "known when tried";
  }
  return "unknown";
}

std::string to_string(EventReasons reasons) {
  static constexpr std::pair<std::uint64_t, std::string_view> kNames[] = {
      {EventReasons::kGpuIdle, "idle"},
      {EventReasons::kApplicationsClocks, "locked or application clocks"},
      {EventReasons::kSwPowerCap, "power cap"},
      {EventReasons::kHwSlowdown, "hardware slow-down"},
      {EventReasons::kSyncBoost, "sync boost"},
      {EventReasons::kSwThermal, "thermal (software)"},
      {EventReasons::kHwThermal, "thermal (hardware)"},
      {EventReasons::kHwPowerBrake, "power brake"},
      {EventReasons::kDisplayClocks, "display clocks"},
  };
  std::string text;
  for (const auto& [bit, name] : kNames) {
    if (!reasons.has(bit)) continue;
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text.empty() ? "none" : text;
}

const std::vector<Hertz>& Capabilities::sm_clocks() const {
  static const std::vector<Hertz> kNone;
  return clocks.empty() ? kNone : clocks.front().sm;
}

}  // namespace gpoeo::gpu
