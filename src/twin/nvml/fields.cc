// SPDX-License-Identifier: Apache-2.0
// nvmlDeviceGetFieldValues: each field has its own status; one that the twin does not have never
// fails the call.
#include "twin/nvml/power.h"

using namespace gpoeo::nvml_abi;
using namespace gpoeo::twin;
using namespace gpoeo::twin::front;

namespace {

constexpr int kFirstWithMemorySensor = 5;  // Volta: HBM with a sensor
constexpr int kFirstWithEcc = 5;

void set(FieldValue& field, unsigned value) {
  field.status = kSuccess;
  field.type = kValueUnsigned;
  field.value.as_unsigned = value;
}

void set_milliwatts(FieldValue& field, const gpoeo::Result<gpoeo::Watts>& power) {
  if (power) {
    set(field, to_milliwatts(*power));
  } else {
    field.status = to_return(power.error());
  }
}

void read(const CardFront& card, FieldValue& field) {
  const DeviceModel& device = card.device();
  // The power fields take a scope; a twin is a GPU alone, no module with a CPU.
  constexpr unsigned kScopeGpu = 0;
  field.value.as_unsigned_long_long = 0;
  field.status = kNotSupported;
  if (field.field >= kFieldPowerAverage && field.field <= kFieldPowerRequestedLimit &&
      field.scope != kScopeGpu) {
    return;
  }
  switch (field.field) {
    case kFieldPowerAverage:
      return set_milliwatts(field, card.power_average());
    case kFieldPowerInstant:
      return set_milliwatts(field, card.power_instant());
    case kFieldPowerMinLimit:
      return set_milliwatts(field, gpoeo::Watts(device.limit_min_w));
    case kFieldPowerMaxLimit:
      return set_milliwatts(field, gpoeo::Watts(device.limit_max_w));
    case kFieldPowerDefaultLimit:
      return set_milliwatts(field, gpoeo::Watts(device.limit_default_w));
    case kFieldPowerCurrentLimit:
      return set_milliwatts(field, card.power_limit());
    case kFieldPowerRequestedLimit: {
      const auto locks = card.read_locks();
      if (!locks) {
        field.status = to_return(locks.error());
        return;
      }
      return set_milliwatts(field, locks->power_limit);
    }
    case kFieldEnergy:
    case kFieldTotalEnergy: {
      const auto energy = card.energy_counter();
      if (!energy) {
        field.status = to_return(energy.error());
        return;
      }
      field.status = kSuccess;
      field.type = kValueUnsignedLongLong;
      field.value.as_unsigned_long_long = to_millijoules(*energy);
      return;
    }
    case kFieldMemoryTemperature: {
      // One thermal mass in the model: memory is as warm as the GPU.
      const auto celsius = card.temperature();
      if (device.architecture < kFirstWithMemorySensor || !celsius) return;
      return set(field, static_cast<unsigned>(celsius->value()));
    }
    case kFieldEccCurrent:
    case kFieldEccPending:
      if (device.architecture >= kFirstWithEcc) set(field, 1);
      return;
    default:
      return;
  }
}

}  // namespace

extern "C" {

Return nvmlDeviceGetFieldValues(DeviceHandle handle, int count, FieldValue* values) {
  return guarded([&](Segment& segment) {
    const unsigned index = card_of(handle);
    if (index >= segment.card_count() || count < 0 || (count > 0 && values == nullptr)) {
      return kInvalidArgument;
    }
    const CardFront card(segment, index);
    for (int i = 0; i < count; ++i) {
      read(card, values[i]);
      values[i].time_us = static_cast<long long>(to_stamp_us(segment.now()));
      values[i].latency_us = 0;
    }
    return kSuccess;
  });
}

}  // extern "C"
