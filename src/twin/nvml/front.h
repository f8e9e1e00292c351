// SPDX-License-Identifier: Apache-2.0
// What the exported functions have in common: the attached segment, handles, guards and the
// translation of the twin's errors to NVML's. The twin's libnvidia-ml.so.1 answers for the cards
// of the segment that GPOEO_TWIN names.
//
// Thread rule: any thread. No exception leaves an exported function. After fork the child goes on
// with the same cards (the mapping is shared, and the one lock here is held across the fork).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "gpu/nvml/abi.h"
#include "twin/card_front.h"
#include "twin/segment.h"

namespace gpoeo::twin::front {

using nvml_abi::DeviceHandle;
using nvml_abi::Return;

// Counted as NVML's own init: each start() needs one stop().
Return start(bool needs_gpus);
Return stop();
// The cards, or null before init. Holding it keeps the mapping alive over a concurrent stop().
std::shared_ptr<Segment> attached();

DeviceHandle handle_of(unsigned card);
// The card's index, or kMaxCards for a pointer that is no handle of ours.
unsigned card_of(DeviceHandle handle);

Return to_return(const Error& error);
inline Return to_return(const Status& status) {
  return status ? nvml_abi::kSuccess : to_return(status.error());
}

// Runs f(Segment&) between init check and exception barrier.
template <typename F>
Return guarded(F f) noexcept {
  try {
    const std::shared_ptr<Segment> segment = attached();
    if (!segment) return nvml_abi::kUninitialized;
    return f(*segment);
  } catch (const std::bad_alloc&) {
    return nvml_abi::kMemory;
  } catch (...) {
    return nvml_abi::kUnknown;
  }
}

// The same with f(CardFront) for a handle; a bad handle is an invalid argument. `arguments` are
// the pointers that must not be null.
template <typename F, typename... Pointers>
Return on_card(DeviceHandle handle, F f, Pointers*... arguments) noexcept {
  return guarded([&](Segment& segment) -> Return {
    const unsigned card = card_of(handle);
    if (card >= segment.card_count()) return nvml_abi::kInvalidArgument;
    const bool missing = (!arguments || ... || false);
    if (missing) return nvml_abi::kInvalidArgument;
    return f(CardFront(segment, card));
  });
}

// *out = value of `result`, or its error.
template <typename T, typename Out, typename Convert>
Return give(const Result<T>& result, Out* out, Convert convert) {
  if (!result) return to_return(result.error());
  *out = convert(*result);
  return nvml_abi::kSuccess;
}

// A plain fact of the card.
template <typename Out, typename Value>
Return answer(DeviceHandle handle, Out* out, Value value) noexcept {
  return on_card(
      handle,
      [&](const CardFront& card) {
        *out = static_cast<Out>(value(card.device()));
        return nvml_abi::kSuccess;
      },
      out);
}

// kInsufficientSize when `text` and its end do not fit.
Return copy_text(std::string_view text, char* out, unsigned length);

unsigned to_mhz_number(Hertz clock);
unsigned to_milliwatts(Watts power);
unsigned to_percent(double share);
// NVML's stamps: microseconds since the Unix epoch, in the twin's time.
unsigned long long to_stamp_us(Instant time);
Instant from_stamp_us(unsigned long long stamp_us);

struct PciAddress {
  unsigned domain = 0, bus = 0, device = 0;
  bool operator==(const PciAddress&) const = default;
};
// "00000000:01:00.0", "0000:01:00.0" or "01:00.0".
std::optional<PciAddress> parse_pci(std::string_view text);

}  // namespace gpoeo::twin::front
