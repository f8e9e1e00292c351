// SPDX-License-Identifier: Apache-2.0
// The two calls that describe clocks in text, in the form driver 580 gives on an H200.
#include <fmt/format.h>

#include <string>

#include "twin/nvml/clocks.h"

using namespace gpoeo::nvml_abi;
using namespace gpoeo::twin;
using namespace gpoeo::twin::front;

namespace {

std::string clocks_text(unsigned sm, unsigned sm_min, unsigned sm_max, unsigned memory,
                        unsigned memory_min, unsigned memory_max) {
  return fmt::format(
      "nvclock={}, nvclockmin={}, nvclockmax={}, nvclockeditable=0, memclock={}, memclockmin={}, "
      "memclockmax={}, memclockeditable=0, memTransferRate={}, memTransferRatemin={}, "
      "memTransferRatemax={}, memTransferRateeditable=0",
      sm, sm_min, sm_max, memory, memory_min, memory_max, 2 * memory, 2 * memory_min,
      2 * memory_max);
}

template <typename Text>
Return mode_text(DeviceHandle handle, ModeText* out, Text text) noexcept {
  return on_card(
      handle,
      [&](const CardFront& card) {
        if (out->version != version_word<ModeText>(1)) return kArgumentVersionMismatch;
        const gpoeo::Result<std::string> made = text(card);
        if (!made) return to_return(made.error());
        return copy_text(*made, out->text, sizeof out->text);
      },
      out);
}

}  // namespace

extern "C" {

Return nvmlDeviceGetCurrentClockFreqs(DeviceHandle handle, ModeText* out) {
  return mode_text(handle, out, [](const CardFront& card) -> gpoeo::Result<std::string> {
    GPOEO_TRY(const gpoeo::Hertz sm, card.sm_clock());
    GPOEO_TRY(const gpoeo::Hertz memory, card.memory_clock());
    const DeviceModel& device = card.device();
    const unsigned memory_mhz = to_mhz_number(memory);
    return clocks_text(to_mhz_number(sm), static_cast<unsigned>(device.sm_mhz[0]),
                       top_sm_mhz(device), memory_mhz, memory_mhz, memory_mhz);
  });
}

Return nvmlDeviceGetPerformanceModes(DeviceHandle handle, ModeText* out) {
  return mode_text(handle, out, [](const CardFront& card) -> gpoeo::Result<std::string> {
    GPOEO_TRY(const gpoeo::Hertz sm, card.sm_clock());
    const DeviceModel& device = card.device();
    std::string text;
    for (int mode = 0; mode < device.memory_clock_count; ++mode) {
      // Slowest memory first.
      const auto m = static_cast<std::size_t>(device.memory_clock_count - 1 - mode);
      const auto memory = static_cast<unsigned>(device.memory_mhz[m]);
      const auto first = static_cast<std::size_t>(device.sm_first[m]);
      const auto last = first + static_cast<std::size_t>(device.sm_number[m]) - 1;
      text += fmt::format(
          "{}perf={}, {}", mode == 0 ? "" : " ; ", mode,
          clocks_text(to_mhz_number(sm), static_cast<unsigned>(device.sm_mhz[first]),
                      static_cast<unsigned>(device.sm_mhz[last]), memory, memory, memory));
    }
    return text;
  });
}

}  // extern "C"
