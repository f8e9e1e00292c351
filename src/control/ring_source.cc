// SPDX-License-Identifier: Apache-2.0
#include "control/ring_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/file.h"
#include "control/window_iterations.h"

namespace gpoeo::control {
namespace {

// A twin's job may pause for a while.
constexpr Duration kPatience = std::chrono::seconds(8);

std::string explain(const wire::CounterBlock& answer) {
  switch (answer.error) {
    case wire::CounterError::kNone:
      return "";
    case wire::CounterError::kUnsupported:
      return fmt::format("this program cannot tell counters of this GPU (code {})", answer.detail);
    case wire::CounterError::kNoPermission:
      return "the driver keeps counters to administrators; cure: options nvidia "
             "NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d, then reload the driver";
    case wire::CounterError::kBusy:
      return "another profiler holds the counters";
    case wire::CounterError::kTooShort:
      return "the window ended before a sample was taken";
    case wire::CounterError::kFailed:
      break;
  }
  return fmt::format("CUPTI failed with {}", answer.detail);
}

// Bytes of another process: what is no known word or no plausible value is left out.
Activity activity_of(const wire::CounterBlock& answer) {
  Activity activity;
  for (const auto& value : std::span(answer.values).first(answer.count)) {
    const ActivityWord* word = find_activity(value.metric);
    if (word != nullptr) set_if_plausible(activity, *word, value.value);
  }
  return activity;
}

}  // namespace

Status RingSource::begin(Instant now, Seconds iteration) {
  const wire::RingReader* ring = progress_.followed_ring();
  if (ring == nullptr) {
    return make_error(ErrorKind::kNotFound, "no process of the job writes a progress ring");
  }
  if (ring->header().producer != wire::RingProducer::kTwinJob) {
    return make_error(ErrorKind::kNotSupported, "the job is no twin's");
  }
  if (ring->state() != wire::RingState::kRunning) {
    return make_error(ErrorKind::kNotSupported, "the job's program has gone quiet");
  }
  const Seconds most = passes_length(iteration);
  GPOEO_TRY(const auto before, ring->counters());
  window_ = std::max(window_, before ? before->window : 0) + 1;
  GPOEO_TRY_STATUS(
      ring->request_counters(window_, static_cast<std::uint64_t>(to_duration(most).count())));
  asked_pid_ = ring->header().pid;
  iteration_ = iteration;
  give_up_at_ = now + to_duration(most) + kPatience;
  open_ = true;
  return {};
}

const wire::RingReader* RingSource::ring() const {
  const wire::RingReader* ring = progress_.followed_ring();
  return ring != nullptr && ring->header().pid == asked_pid_ ? ring : nullptr;
}

std::optional<Result<CounterReading>> RingSource::poll(Instant now, std::span<const Instant> ends,
                                                       bool) {
  const wire::RingReader* asked = ring();
  if (asked == nullptr) {
    return make_error(ErrorKind::kNotFound, "the process that was asked is no longer followed");
  }
  const auto answer = asked->counters();
  if (!answer) return std::unexpected(answer.error());
  if (!*answer || (*answer)->window != window_) {
    if (asked->state() != wire::RingState::kRunning) {
      return make_error(ErrorKind::kNotSupported, "the job's program has gone quiet");
    }
    if (now < give_up_at_) return std::nullopt;
    return make_error(
        ErrorKind::kNotFound,
        fmt::format("no answer from process {} (does it launch anything?)", asked_pid_));
  }
  open_ = false;
  const wire::CounterBlock& block = **answer;
  if (block.error != wire::CounterError::kNone) {
    return make_error(ErrorKind::kNotSupported, explain(block));
  }
  CounterReading reading;
  reading.activity = activity_of(block);
  if (reading.activity == Activity{}) {
    return make_error(ErrorKind::kInvalid, "the answer holds no plausible value");
  }
  reading.origin = CounterOrigin::kTwinJob;
  const Instant begin = instant_from_ns(block.begin_ns), end = instant_from_ns(block.end_ns);
  reading.counted = block.covered_ns > 0 ? Seconds(static_cast<double>(block.covered_ns) * 1e-9)
                                         : to_seconds(end - begin);
  count_iterations(ends, {.begin = begin, .end = end, .passes = block.passes, .before = iteration_},
                   reading);
  return reading;
}

void RingSource::cancel() {
  if (!std::exchange(open_, false)) return;
  // A request that cannot be taken back ends by itself.
  if (const wire::RingReader* asked = ring()) static_cast<void>(asked->stop_counters(window_));
}

}  // namespace gpoeo::control
