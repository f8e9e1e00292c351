// SPDX-License-Identifier: Apache-2.0
#include "telemetry/settle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gpoeo::telemetry {
namespace {

using gpu::EventReasons;

constexpr std::uint64_t kLimits = EventReasons::kSwPowerCap | EventReasons::kHwSlowdown |
                                  EventReasons::kSwThermal | EventReasons::kHwThermal |
                                  EventReasons::kHwPowerBrake | EventReasons::kSyncBoost;
// Power that swings by more than this share of its mean hides a step.
constexpr double kSwings = 0.15;
// Walking back for the change point, so many samples are averaged.
constexpr std::size_t kWalkSamples = 5;

struct Stretch {
  std::size_t samples = 0;
  double mean_w = 0;
  double deviation_w = 0;
};

Stretch stretch(const TimeRing<gpu::PowerSample>& power, std::size_t from, std::size_t to) {
  Stretch s;
  double squares = 0;
  for (std::size_t i = from; i < to; ++i) {
    ++s.samples;
    const double off = power[i].power.value() - s.mean_w;
    s.mean_w += off / static_cast<double>(s.samples);
    squares += off * (power[i].power.value() - s.mean_w);
  }
  if (s.samples > 1) s.deviation_w = std::sqrt(squares / static_cast<double>(s.samples - 1));
  return s;
}

}  // namespace

std::string_view to_string(SettleState state) {
  switch (state) {
    case SettleState::kWaiting:
      return "waiting";
    case SettleState::kSettled:
      return "settled";
    case SettleState::kCouldNotHold:
      return "could not hold";
    case SettleState::kTimedOut:
      return "timed out";
  }
  return "unknown";
}

// The clock readings since the write, the newest run of them that says the same thing.
struct Settle::ClockView {
  enum class Says { kNothing, kAsAsked, kBelow, kAbove } says = Says::kNothing;
  int running = 0;       // how many of the newest readings say it
  Instant since{};       // the first of them
  bool limited = false;  // a limit was given as reason during the run
  EventReasons reasons;  // all reasons seen during the run
  std::optional<Hertz> clock;
};

Settle::Settle(Instant written, std::optional<gpu::ClockRange> asked, SettleOptions options)
    : written_(written), asked_(asked), options_(options) {}

Settle::ClockView Settle::look_at_clocks(const History& history) const {
  using Says = ClockView::Says;
  ClockView view;
  for (std::size_t i = history.status.first_after(written_); i < history.status.size(); ++i) {
    const StatusPoint& point = history.status[i];
    if (!point.sm_clock) continue;
    view.clock = point.sm_clock;
    Says says = Says::kAsAsked;
    if (asked_) {
      const double off_hz = (*point.sm_clock - asked_->max).value();
      if (off_hz > options_.clock_tolerance.value()) says = Says::kAbove;
      if (off_hz < -options_.clock_tolerance.value()) says = Says::kBelow;
    }
    const bool idle = point.reasons && point.reasons->has(EventReasons::kGpuIdle);
    if (says == Says::kBelow && idle) says = Says::kNothing;
    if (says != view.says) {
      view.says = says;
      view.running = 0;
      view.since = point.time;
      view.limited = false;
      view.reasons = {};
    }
    ++view.running;
    if (point.reasons) {
      view.reasons.bits |= point.reasons->bits;
      view.limited = view.limited || point.reasons->has(kLimits);
    }
  }
  return view;
}

// From when on power is as it is now; nothing while it still moves.
std::optional<Instant> Settle::power_steady_since(const History& history) const {
  const auto& power = history.power;
  if (power.empty()) return std::nullopt;
  const Instant newest = power.back().time;
  const std::size_t written = power.first_after(written_);
  const std::size_t middle = power.first_after(newest - options_.power_stretch);
  const std::size_t first =
      std::max(written, power.first_after(newest - 2 * options_.power_stretch));
  const Stretch now = stretch(power, middle, power.size());
  const Stretch before = stretch(power, first, std::max(first, middle));
  // Half of the earlier stretch must lie after the write, or the comparison sees the old clock.
  if (now.samples < 3 || before.samples < 3 ||
      newest - written_ < options_.power_stretch + options_.power_stretch / 2) {
    return std::nullopt;
  }
  if (now.deviation_w > kSwings * now.mean_w) return written_;
  const auto scatter = [](const Stretch& s) {
    return s.deviation_w * s.deviation_w / static_cast<double>(s.samples);
  };
  const double tolerance_w =
      options_.power_tolerance * now.mean_w + 2 * std::sqrt(scatter(now) + scatter(before));
  if (std::abs(now.mean_w - before.mean_w) > tolerance_w) return std::nullopt;
  // Back to the change point: as long as a short mean stays near the present one.
  std::size_t steady = first;
  while (steady > written && steady >= kWalkSamples) {
    const Stretch piece = stretch(power, steady - kWalkSamples, steady);
    if (std::abs(piece.mean_w - now.mean_w) > tolerance_w + now.deviation_w) break;
    --steady;
  }
  return std::max(written_, steady > 0 ? power[steady - 1].time : power[steady].time);
}

void Settle::finish(SettleState state, Instant at, std::string text) {
  report_.state = state;
  report_.settled_at = at;
  report_.text = std::move(text);
}

const SettleReport& Settle::update(const History& history, Instant now) {
  using Says = ClockView::Says;
  if (report_.state != SettleState::kWaiting) return report_;
  const ClockView view = look_at_clocks(history);
  report_.clock = view.clock;
  report_.reasons = view.says == Says::kAsAsked ? EventReasons{} : view.reasons;
  if (now - written_ < options_.least) return report_;

  const auto steady = power_steady_since(history);
  const bool clock_sure = view.running >= options_.clock_readings;
  const double after_s = to_seconds(now - written_).value();
  if (clock_sure && view.says == Says::kAsAsked && steady) {
    const Instant at = std::max(asked_ ? view.since : written_, *steady);
    finish(
        SettleState::kSettled, at,
        fmt::format("settled {:.2f} s after the clock was set", to_seconds(at - written_).value()));
    return report_;
  }
  // A limit moves the clock about, so power need not be steady; it must only have had the time.
  if (clock_sure && view.says == Says::kBelow && view.limited &&
      now - view.since >= options_.power_stretch) {
    finish(SettleState::kCouldNotHold, view.since,
           fmt::format("the card does not hold {:.0f} MHz: it reads {:.0f} MHz (reasons: {})",
                       to_mhz(asked_->max), to_mhz(*view.clock), gpu::to_string(view.reasons)));
    return report_;
  }
  if (now - written_ < options_.deadline) return report_;

  if (!view.clock) {
    // The clock cannot be read here; power alone has to do.
    finish(steady ? SettleState::kSettled : SettleState::kTimedOut, steady.value_or(now),
           "the SM clock cannot be read; judged by power alone");
  } else if (clock_sure && (view.says == Says::kBelow || view.says == Says::kAbove)) {
    finish(SettleState::kCouldNotHold, view.since,
           fmt::format(
               "{:.0f} MHz was asked, the card reads {:.0f} MHz {:.1f} s later (reasons: {})",
               to_mhz(asked_->max), to_mhz(*view.clock), after_s, gpu::to_string(view.reasons)));
  } else {
    finish(SettleState::kTimedOut, now,
           view.says == Says::kNothing
               ? fmt::format("the card was idle for the {:.1f} s after the clock was set", after_s)
               : fmt::format("no steady state {:.1f} s after the clock was set", after_s));
  }
  return report_;
}

}  // namespace gpoeo::telemetry
