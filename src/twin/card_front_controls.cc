// SPDX-License-Identifier: Apache-2.0
// The setters of CardFront.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "twin/card_front.h"

namespace gpoeo::twin {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// A write: alive, not chosen to fail, allowed; then `f`, at the present moment.
template <typename Write>
Status write(CardStore& store, const CardFront& front, gpu::Control control, Write f) {
  Status answer;
  // What the visit returns is what must last: the countdown does, although the caller sees a
  // failure.
  GPOEO_TRY_STATUS(store.visit(front.index(), [&](Card& card) -> Status {
    CardState& s = card.state;
    const auto refuse = [&](ErrorKind kind, std::string_view why) {
      answer =
          make_error(kind, fmt::format("cannot set {} of simulated GPU {} ({}): {}",
                                       to_string(control), front.index(), front.name().uuid, why));
    };
    const gpu::Support support = front.device().support(control);
    if (s.lost)
      refuse(ErrorKind::kDeviceLost, "the GPU is lost");
    else if (s.write_failure_in > 0 && --s.write_failure_in == 0)
      refuse(static_cast<ErrorKind>(s.write_failure_kind), "a test made this call fail");
    else if (support == gpu::Support::kNoPermission)
      refuse(ErrorKind::kNoPermission, "this user has not the right (device file)");
    else if (support != gpu::Support::kYes)
      refuse(ErrorKind::kNotSupported, "this model has no such control");
    else
      answer = f(card);
    return {};
  }));
  return answer;
}

std::unexpected<Error> bad_range(std::string_view what, gpu::ClockRange range) {
  return make_error(ErrorKind::kInvalid,
                    fmt::format("cannot lock {} clocks to {:.0f}..{:.0f} MHz: not a range that "
                                "holds a supported clock",
                                what, to_mhz(range.min), to_mhz(range.max)));
}

}  // namespace

Status CardFront::lock_sm_clocks(gpu::ClockRange range) const {
  return write(*store_, *this, gpu::Control::kSmClocks, [&](Card& card) -> Status {
    const DeviceModel& d = card.device;
    const auto clocks = std::span(d.sm_mhz).first(at(d.sm_clock_count));
    const double low = to_mhz(range.min), high = to_mhz(range.max);
    if (!(low <= high) || high < clocks.front() || low > clocks.back())
      return bad_range("SM", range);
    // First clock at or above the lower bound, last at or below the upper one.
    const auto first = std::lower_bound(clocks.begin(), clocks.end(), low);
    const auto last = std::upper_bound(clocks.begin(), clocks.end(), high) - 1;
    const auto high_index = static_cast<int>(last - clocks.begin());
    const int low_index = std::min(static_cast<int>(first - clocks.begin()), high_index);
    command_sm_lock(card, low_index, high_index);
    return {};
  });
}

Status CardFront::reset_sm_clocks() const {
  return write(*store_, *this, gpu::Control::kSmClocks, [](Card& card) -> Status {
    command_sm_reset(card);
    return {};
  });
}

Status CardFront::lock_memory_clocks(gpu::ClockRange range) const {
  return write(*store_, *this, gpu::Control::kMemoryClocks, [&](Card& card) -> Status {
    const DeviceModel& d = card.device;
    const auto clocks = std::span(d.memory_mhz).first(at(d.memory_clock_count));  // descending
    const double low = to_mhz(range.min), high = to_mhz(range.max);
    if (!(low <= high) || high < clocks.back() || low > clocks.front())
      return bad_range("memory", range);
    int highest = 0;
    while (clocks[at(highest)] > high) ++highest;
    int lowest = d.memory_clock_count - 1;
    while (lowest > highest && clocks[at(lowest)] < low) --lowest;
    command_memory_lock(card, highest, lowest);
    return {};
  });
}

Status CardFront::reset_memory_clocks() const {
  return write(*store_, *this, gpu::Control::kMemoryClocks, [](Card& card) -> Status {
    command_memory_reset(card);
    return {};
  });
}

Status CardFront::set_power_limit(Watts limit) const {
  return write(*store_, *this, gpu::Control::kPowerLimit, [&](Card& card) -> Status {
    const DeviceModel& d = card.device;
    if (!(limit.value() >= d.limit_min_w && limit.value() <= d.limit_max_w))
      return make_error(ErrorKind::kInvalid,
                        fmt::format("cannot set a power limit of {:.0f} W on '{}': it takes {:.0f} "
                                    "to {:.0f} W",
                                    limit.value(), d.name.data(), d.limit_min_w, d.limit_max_w));
    command_power_limit(card, limit.value());
    return {};
  });
}

}  // namespace gpoeo::twin
