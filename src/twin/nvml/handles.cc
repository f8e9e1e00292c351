// SPDX-License-Identifier: Apache-2.0
// From an index, UUID, bus id or serial number to a handle.
#include <cstring>
#include <string>
#include <string_view>

#include "twin/nvml/front.h"

using namespace gpoeo::nvml_abi;
using namespace gpoeo::twin;
using namespace gpoeo::twin::front;

namespace {

template <typename Matches>
Return find(DeviceHandle* out, const void* key, Matches matches) noexcept {
  return guarded([&](Segment& segment) {
    if (out == nullptr || key == nullptr) return kInvalidArgument;
    for (unsigned card = 0; card < segment.card_count(); ++card) {
      if (!matches(segment.name(card))) continue;
      *out = handle_of(card);
      return kSuccess;
    }
    return kNotFound;
  });
}

// "GPU-01234567-89ab-..." -> its 16 bytes, as lower-case hexadecimal digits.
std::string digits_of(std::string_view uuid) {
  std::string digits;
  for (const char c : uuid.substr(uuid.starts_with("GPU-") ? 4 : 0)) {
    if (c != '-') digits += c;
  }
  return digits;
}

std::string hex(const unsigned char* bytes, std::size_t count) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

}  // namespace

extern "C" {

Return nvmlDeviceGetCount_v2(unsigned* count) {
  return guarded([&](Segment& segment) {
    if (count == nullptr) return kInvalidArgument;
    *count = segment.card_count();
    return kSuccess;
  });
}
Return nvmlDeviceGetCount(unsigned* count) { return nvmlDeviceGetCount_v2(count); }

Return nvmlDeviceGetHandleByIndex_v2(unsigned index, DeviceHandle* device) {
  return guarded([&](Segment& segment) {
    if (device == nullptr || index >= segment.card_count()) return kInvalidArgument;
    *device = handle_of(index);
    return kSuccess;
  });
}
Return nvmlDeviceGetHandleByIndex(unsigned index, DeviceHandle* device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

Return nvmlDeviceGetHandleByUUID(const char* uuid, DeviceHandle* device) {
  return find(device, uuid, [&](const CardName& name) { return name.uuid == uuid; });
}

Return nvmlDeviceGetHandleByUUIDV(const UuidRequest* uuid, DeviceHandle* device) {
  constexpr unsigned kText = 1;
  constexpr unsigned kBytes = 2;
  return guarded([&](Segment&) {
    if (uuid == nullptr || device == nullptr) return kInvalidArgument;
    if (uuid->version != version_word<UuidRequest>(1)) return kArgumentVersionMismatch;
    if (uuid->type == kText) {
      const std::string text(uuid->text, strnlen(uuid->text, sizeof uuid->text));
      return find(device, uuid, [&](const CardName& name) { return name.uuid == text; });
    }
    if (uuid->type == kBytes) {
      const std::string digits = hex(uuid->bytes, sizeof uuid->bytes);
      return find(device, uuid,
                  [&](const CardName& name) { return digits_of(name.uuid) == digits; });
    }
    return kInvalidArgument;
  });
}

Return nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, DeviceHandle* device) {
  return guarded([&](Segment&) {
    if (bus_id == nullptr || device == nullptr) return kInvalidArgument;
    const auto wanted = parse_pci(bus_id);
    if (!wanted) return kInvalidArgument;
    return find(device, bus_id,
                [&](const CardName& name) { return parse_pci(name.pci_bus_id) == wanted; });
  });
}
Return nvmlDeviceGetHandleByPciBusId(const char* bus_id, DeviceHandle* device) {
  return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}

Return nvmlDeviceGetHandleBySerial(const char* serial, DeviceHandle* device) {
  return find(device, serial, [&](const CardName& name) { return name.serial == serial; });
}

}  // extern "C"
