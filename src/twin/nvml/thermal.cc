// SPDX-License-Identifier: Apache-2.0
// Temperature and its thresholds.
#include <cmath>

#include "twin/nvml/front.h"

using namespace gpoeo::nvml_abi;
using namespace gpoeo::twin;
using namespace gpoeo::twin::front;

namespace {

int whole_degrees(gpoeo::Celsius celsius) { return static_cast<int>(std::lround(celsius.value())); }

}  // namespace

extern "C" {

Return nvmlDeviceGetTemperature(DeviceHandle handle, TemperatureSensor sensor, unsigned* celsius) {
  return on_card(
      handle,
      [&](const CardFront& card) {
        if (sensor != kTemperatureGpu) return kInvalidArgument;
        return give(card.temperature(), celsius,
                    [](gpoeo::Celsius c) { return static_cast<unsigned>(whole_degrees(c)); });
      },
      celsius);
}

Return nvmlDeviceGetTemperatureV(DeviceHandle handle, TemperatureReading* reading) {
  return on_card(
      handle,
      [&](const CardFront& card) {
        if (reading->version != version_word<TemperatureReading>(1)) {
          return kArgumentVersionMismatch;
        }
        if (reading->sensor != kTemperatureGpu) return kInvalidArgument;
        return give(card.temperature(), &reading->celsius, whole_degrees);
      },
      reading);
}

Return nvmlDeviceGetTemperatureThreshold(DeviceHandle handle, TemperatureThreshold threshold,
                                         unsigned* celsius) {
  return on_card(
      handle,
      [&](const CardFront& card) {
        switch (threshold) {
          case kThresholdShutdown:
            *celsius = static_cast<unsigned>(card.device().shutdown_c);
            return kSuccess;
          case kThresholdSlowdown:
            *celsius = static_cast<unsigned>(card.device().slowdown_c);
            return kSuccess;
          default:
            return threshold < kThresholdCount ? kNotSupported : kInvalidArgument;
        }
      },
      celsius);
}

Return nvmlDeviceGetMarginTemperature(DeviceHandle handle, MarginTemperature* margin) {
  return on_card(
      handle,
      [&](const CardFront& card) {
        if (margin->version != version_word<MarginTemperature>(1)) return kArgumentVersionMismatch;
        return give(card.temperature(), &margin->celsius, [&](gpoeo::Celsius c) {
          return whole_degrees(gpoeo::Celsius(card.device().slowdown_c) - c);
        });
      },
      margin);
}

}  // extern "C"
