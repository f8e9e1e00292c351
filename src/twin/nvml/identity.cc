// SPDX-License-Identifier: Apache-2.0
// What a card is. What the device file does not hold (VBIOS, board part) says that it is a twin.
#include <fmt/format.h>

#include <cstring>
#include <string>

#include "twin/nvml/front.h"

using namespace gpoeo::nvml_abi;
using namespace gpoeo::twin;
using namespace gpoeo::twin::front;

namespace {

constexpr unsigned kLinkWidth = 16;
constexpr unsigned kBusTypePcie = 2;

// PCIe generation of the data-centre cards of each architecture.
unsigned link_generation(const DeviceModel& device) {
  if (device.architecture >= 9) return 5;
  return device.architecture >= static_cast<int>(kArchitectureAmpere) ? 4 : 3;
}

template <typename Text>
Return text_answer(DeviceHandle handle, char* out, unsigned length, Text text) noexcept {
  return on_card(
      handle, [&](const CardFront& card) { return copy_text(text(card), out, length); }, out);
}

Return fill_pci(const CardFront& card, PciInfo& pci) {
  const auto address = parse_pci(card.name().pci_bus_id);
  if (!address) return kUnknown;
  pci = {};
  pci.domain = address->domain;
  pci.bus = address->bus;
  pci.device = address->device;
  pci.device_id = card.device().pci_device_id;
  pci.subsystem_id = card.device().pci_device_id;
  fmt::format_to_n(pci.bus_id, sizeof pci.bus_id - 1, "{:08X}:{:02X}:{:02X}.0", pci.domain, pci.bus,
                   pci.device);
  fmt::format_to_n(pci.bus_id_legacy, sizeof pci.bus_id_legacy - 1, "{:04X}:{:02X}:{:02X}.0",
                   pci.domain & 0xFFFF, pci.bus, pci.device);
  return kSuccess;
}

}  // namespace

extern "C" {

Return nvmlDeviceGetName(DeviceHandle handle, char* name, unsigned length) {
  return text_answer(handle, name, length,
                     [](const CardFront& card) { return std::string(card.device().name.data()); });
}
Return nvmlDeviceGetUUID(DeviceHandle handle, char* uuid, unsigned length) {
  return text_answer(handle, uuid, length, [](const CardFront& card) { return card.name().uuid; });
}
Return nvmlDeviceGetSerial(DeviceHandle handle, char* serial, unsigned length) {
  return text_answer(handle, serial, length,
                     [](const CardFront& card) { return card.name().serial; });
}
Return nvmlDeviceGetBoardPartNumber(DeviceHandle handle, char* part, unsigned length) {
  return text_answer(handle, part, length,
                     [](const CardFront&) { return std::string("GPOEO-TWIN"); });
}
Return nvmlDeviceGetVbiosVersion(DeviceHandle handle, char* version, unsigned length) {
  return text_answer(handle, version, length,
                     [](const CardFront&) { return std::string("00.00.00.00.00 (gpoeo twin)"); });
}

Return nvmlDeviceGetIndex(DeviceHandle handle, unsigned* index) {
  return on_card(
      handle, [&](const CardFront& card) { return *index = card.index(), kSuccess; }, index);
}
Return nvmlDeviceGetMinorNumber(DeviceHandle handle, unsigned* minor) {
  return nvmlDeviceGetIndex(handle, minor);
}
Return nvmlDeviceGetModuleId(DeviceHandle handle, unsigned* module) {
  return nvmlDeviceGetIndex(handle, module);
}
Return nvmlDeviceGetBoardId(DeviceHandle handle, unsigned* board) {
  return on_card(
      handle,
      [&](const CardFront& card) {
        const auto address = parse_pci(card.name().pci_bus_id);
        *board = address ? address->bus << 8 | address->device : card.index();
        return kSuccess;
      },
      board);
}
Return nvmlDeviceGetMultiGpuBoard(DeviceHandle handle, unsigned* several) {
  return answer(handle, several, [](const DeviceModel&) { return 0; });
}
Return nvmlDeviceOnSameBoard(DeviceHandle first, DeviceHandle second, int* same) {
  return on_card(
      first,
      [&](const CardFront& a) {
        return on_card(second, [&](const CardFront& b) {
          *same = a.index() == b.index();
          return kSuccess;
        });
      },
      same);
}

Return nvmlDeviceGetBrand(DeviceHandle handle, unsigned* brand) {
  return answer(handle, brand, [](const DeviceModel& d) { return d.brand; });
}
Return nvmlDeviceGetArchitecture(DeviceHandle handle, unsigned* architecture) {
  return answer(handle, architecture, [](const DeviceModel& d) { return d.architecture; });
}
Return nvmlDeviceGetCudaComputeCapability(DeviceHandle handle, int* major, int* minor) {
  return on_card(
      handle,
      [&](const CardFront& card) {
        *major = card.device().cuda_major;
        *minor = card.device().cuda_minor;
        return kSuccess;
      },
      major, minor);
}
Return nvmlDeviceGetNumGpuCores(DeviceHandle handle, unsigned* cores) {
  return answer(handle, cores, [](const DeviceModel& d) { return d.cores; });
}
Return nvmlDeviceGetMemoryBusWidth(DeviceHandle handle, unsigned* bits) {
  return answer(handle, bits, [](const DeviceModel& d) { return d.memory_bus_bits; });
}

Return nvmlDeviceGetPciInfo_v3(DeviceHandle handle, PciInfo* pci) {
  return on_card(
      handle, [&](const CardFront& card) { return fill_pci(card, *pci); }, pci);
}
// The older forms end before the long bus id.
Return nvmlDeviceGetPciInfo_v2(DeviceHandle handle, PciInfo* pci) {
  return on_card(
      handle,
      [&](const CardFront& card) {
        PciInfo full;
        const Return code = fill_pci(card, full);
        if (code != kSuccess) return code;
        // Room that a _v2 structure is known to have: everything up to the reserved words.
        std::memcpy(pci, &full, offsetof(PciInfo, bus_id));
        return kSuccess;
      },
      pci);
}
Return nvmlDeviceGetPciInfo(DeviceHandle handle, PciInfo* pci) {
  return on_card(
      handle,
      [&](const CardFront& card) {
        PciInfo full;
        const Return code = fill_pci(card, full);
        if (code != kSuccess) return code;
        std::memcpy(pci, &full, offsetof(PciInfo, subsystem_id));
        return kSuccess;
      },
      pci);
}
Return nvmlDeviceGetPciInfoExt(DeviceHandle handle, PciInfoExt* pci) {
  constexpr unsigned kDisplayController = 3;
  constexpr unsigned k3dController = 2;
  return on_card(
      handle,
      [&](const CardFront& card) {
        if (pci->version != version_word<PciInfoExt>(1)) return kArgumentVersionMismatch;
        PciInfo plain;
        const Return code = fill_pci(card, plain);
        if (code != kSuccess) return code;
        pci->domain = plain.domain;
        pci->bus = plain.bus;
        pci->device = plain.device;
        pci->device_id = plain.device_id;
        pci->subsystem_id = plain.subsystem_id;
        pci->base_class = kDisplayController;
        pci->sub_class = k3dController;
        std::memcpy(pci->bus_id, plain.bus_id, sizeof pci->bus_id);
        return kSuccess;
      },
      pci);
}

Return nvmlDeviceGetMaxPcieLinkGeneration(DeviceHandle handle, unsigned* generation) {
  return answer(handle, generation, link_generation);
}
Return nvmlDeviceGetGpuMaxPcieLinkGeneration(DeviceHandle handle, unsigned* generation) {
  return answer(handle, generation, link_generation);
}
Return nvmlDeviceGetCurrPcieLinkGeneration(DeviceHandle handle, unsigned* generation) {
  return answer(handle, generation, link_generation);
}
Return nvmlDeviceGetMaxPcieLinkWidth(DeviceHandle handle, unsigned* width) {
  return answer(handle, width, [](const DeviceModel&) { return kLinkWidth; });
}
Return nvmlDeviceGetCurrPcieLinkWidth(DeviceHandle handle, unsigned* width) {
  return answer(handle, width, [](const DeviceModel&) { return kLinkWidth; });
}
Return nvmlDeviceGetPcieLinkMaxSpeed(DeviceHandle handle, unsigned* speed) {
  return answer(handle, speed, link_generation);
}
Return nvmlDeviceGetPcieSpeed(DeviceHandle handle, unsigned* mbps) {
  return answer(handle, mbps,
                [](const DeviceModel& d) { return 2000U << (link_generation(d) - 1); });
}
Return nvmlDeviceGetBusType(DeviceHandle handle, unsigned* type) {
  return answer(handle, type, [](const DeviceModel&) { return kBusTypePcie; });
}

}  // extern "C"
