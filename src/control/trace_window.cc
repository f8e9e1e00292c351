// SPDX-License-Identifier: Apache-2.0
#include "control/trace_window.h"

#include <algorithm>

#include "base/chance.h"
#include "iteration/slowdown.h"

namespace gpoeo::control {
namespace {

using iteration::PowerTrace;

// Traces compare worse than counts: less than this says too little, and more time is given.
constexpr Duration kLeast = std::chrono::seconds(8);
constexpr Duration kReference = std::chrono::seconds(20);
constexpr Duration kLongest = std::chrono::seconds(30);
// A look costs some milliseconds of CPU: each waits for so much more trace than the last.
constexpr double kGrowth = 0.25;
// What a spectrum does not tell of its own error.
constexpr double kLeastError = 0.001;

PowerTrace trace_between(const telemetry::History& history, Instant from) {
  PowerTrace trace;
  const auto& power = history.power;
  for (std::size_t i = power.first_after(from); i < power.size(); ++i) {
    trace.t_s.push_back(to_seconds(power[i].time - from).value());
    trace.power_w.push_back(power[i].power.value());
  }
  return trace;
}

PowerTrace part(const PowerTrace& trace, std::size_t first, std::size_t end) {
  const auto slice = [&](const std::vector<double>& v) {
    return std::vector<double>(v.begin() + static_cast<std::ptrdiff_t>(first),
                               v.begin() + static_cast<std::ptrdiff_t>(end));
  };
  return {.t_s = slice(trace.t_s), .power_w = slice(trace.power_w)};
}

}  // namespace

TraceWindow::TraceWindow(const policy::MeasureGoal& goal, Instant from)
    : goal_(goal),
      from_(from),
      next_look_(from + std::max<Duration>(to_duration(goal.least), kLeast)),
      longest_(std::max<Duration>(to_duration(goal.longest), kLongest)) {}

std::optional<Result<TraceWindow::Timing>> TraceWindow::look(const telemetry::History& history,
                                                             Instant now,
                                                             const PowerTrace* reference) {
  if (reference == nullptr) next_look_ = std::max(next_look_, from_ + kReference);
  if (now < next_look_ || history.power.empty()) return std::nullopt;
  const Duration span = now - from_;
  next_look_ = now + to_duration(to_seconds(span) * kGrowth);
  // When its time is up there is an answer, whenever the last look was.
  if (now < latest_answer()) next_look_ = std::min(next_look_, latest_answer());
  trace_ = trace_between(history, from_);
  const bool time_up = span >= longest_;
  iteration::SlowdownEstimate estimate;
  if (reference != nullptr) {
    estimate = iteration::compare_traces(*reference, trace_);
  } else {
    const std::size_t half = trace_.t_s.size() / 2;
    estimate =
        iteration::compare_traces(part(trace_, 0, half), part(trace_, half, trace_.t_s.size()));
  }
  if (!estimate.time_ratio) {
    if (!time_up) return std::nullopt;
    return Result<Timing>(make_error(ErrorKind::kInvalid, std::move(estimate.reason)));
  }
  Timing timing{.from = from_, .to = history.power.back().time};
  timing.error = std::max((estimate.high - estimate.low) / (2 * kNinety), kLeastError);
  if (reference == nullptr) {
    // Its own length of an iteration is the unit; what it may be off is in every comparison.
    timing.error = kLeastError;
    return Result<Timing>(timing);
  }
  timing.time_ratio = *estimate.time_ratio;
  const bool sharp = goal_.precision <= 0 || timing.error <= goal_.precision * timing.time_ratio;
  if (!sharp && !time_up) return std::nullopt;
  return Result<Timing>(timing);
}

}  // namespace gpoeo::control
