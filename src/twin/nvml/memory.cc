// SPDX-License-Identifier: Apache-2.0
// Device memory.
#include "twin/nvml/front.h"

using namespace gpoeo::nvml_abi;
using namespace gpoeo::twin;
using namespace gpoeo::twin::front;

extern "C" {

// The first form counts what the driver reserves as used.
Return nvmlDeviceGetMemoryInfo(DeviceHandle handle, Memory* memory) {
  return on_card(
      handle,
      [&](const CardFront& card) {
        return give(card.memory_use(), memory, [](const MemoryUse& use) {
          const auto used = use.used_bytes + use.reserved_bytes;
          return Memory{use.total_bytes, use.total_bytes - used, used};
        });
      },
      memory);
}

Return nvmlDeviceGetMemoryInfo_v2(DeviceHandle handle, MemoryV2* memory) {
  return on_card(
      handle,
      [&](const CardFront& card) {
        if (memory->version != version_word<MemoryV2>(2)) return kArgumentVersionMismatch;
        return give(card.memory_use(), memory, [&](const MemoryUse& use) {
          return MemoryV2{memory->version, use.total_bytes, use.reserved_bytes,
                          use.total_bytes - use.used_bytes - use.reserved_bytes, use.used_bytes};
        });
      },
      memory);
}

// The whole memory is visible on the bus, as on the data-centre cards.
Return nvmlDeviceGetBAR1MemoryInfo(DeviceHandle handle, Memory* memory) {
  constexpr unsigned long long kUsed = 1ULL << 20;
  return on_card(
      handle,
      [&](const CardFront& card) {
        const unsigned long long total = card.device().memory_bytes;
        *memory = {total, total - kUsed, kUsed};
        return kSuccess;
      },
      memory);
}

}  // extern "C"
