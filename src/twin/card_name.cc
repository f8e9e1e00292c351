// SPDX-License-Identifier: Apache-2.0
#include "twin/card_name.h"

#include <fmt/format.h>

#include "twin/random.h"

namespace gpoeo::twin {

CardName make_card_name(std::string_view store_name, unsigned card) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
  for (const unsigned char c : store_name) hash = (hash ^ c) * 0x100000001b3ULL;
  Random random = make_random(hash ^ (std::uint64_t{card} << 56));
  const std::uint64_t a = next_u64(random), b = next_u64(random);
  CardName name;
  // Version 4, variant 1 of RFC 9562, as real ones look.
  name.uuid = fmt::format("{}{:04x}-4{:03x}-{:04x}-{:012x}", kUuidPrefix, a & 0xFFFF,
                          (a >> 16) & 0xFFF, 0x8000 | ((a >> 28) & 0x3FFF), b & 0xFFFFFFFFFFFFULL);
  name.pci_bus_id = fmt::format("00000000:{:02X}:00.0", card + 1);
  name.serial = fmt::format("7714{:09}", b % 1'000'000'000ULL);
  return name;
}

}  // namespace gpoeo::twin
