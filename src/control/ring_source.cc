// SPDX-License-Identifier: Apache-2.0
#include "control/ring_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include "base/file.h"

namespace gpoeo::control {
namespace {

// The metrics of a chip take up to eight passes, each of half a second or of one iteration.
constexpr int kPasses = 8;
constexpr Seconds kLeast{4.0};
constexpr Seconds kLongest{30.0};
// Setting up and evaluating took under a second on an H200; a job may also pause its launches.
constexpr Duration kPatience = std::chrono::seconds(8);

std::string explain(const wire::CounterBlock& answer) {
  switch (answer.error) {
    case wire::CounterError::kNone:
      return "";
    case wire::CounterError::kUnsupported:
      return fmt::format("this process's CUPTI cannot sample counters of this GPU (code {})",
                         answer.detail);
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

CounterOrigin origin_of(const wire::RingReader& ring, const wire::CounterBlock& answer) {
  if (ring.header().producer == wire::RingProducer::kTwinJob) return CounterOrigin::kTwinJob;
  return answer.source == wire::CounterSourceId::kRangeProfiler ? CounterOrigin::kRange
                                                                : CounterOrigin::kPmSampling;
}

// Mean time of the iterations that ended while counters were read. The window itself may slow
// them, so that the time before it is only what is left when none can be told.
Seconds iteration_inside(std::span<const Instant> ends, Instant begin, Instant end,
                         Seconds before) {
  const auto first = std::ranges::lower_bound(ends, begin);
  const auto last = std::ranges::upper_bound(ends, end);
  if (last - first < 2) return before;
  return to_seconds(*std::prev(last) - *first) / static_cast<double>(last - first - 1);
}

// Of each pass, as they share the window: how far it is from whole iterations, over its own.
double remainder_of(double iterations, std::uint32_t passes) {
  const double each = iterations / std::max(passes, 1U);
  return each > 0 ? std::abs(each - std::round(each)) / each : 0;
}

// Bytes of another process: what is no known word or no plausible value is left out.
Activity activity_of(const wire::CounterBlock& answer) {
  Activity activity;
  for (const auto& value : std::span(answer.values).first(answer.count)) {
    const ActivityWord* word = find_activity(value.metric);
    if (word == nullptr || !plausible(*word, value.value)) continue;
    activity.*word->field = word->share ? std::min(value.value, 1.0) : value.value;
  }
  return activity;
}

}  // namespace

Status RingSource::begin(Instant now, Seconds iteration) {
  const wire::RingReader* ring = progress_.followed_ring();
  if (ring == nullptr) {
    return make_error(ErrorKind::kNotFound, "no process of the job writes a progress ring");
  }
  if (ring->header().producer == wire::RingProducer::kStepMarks) {
    return make_error(ErrorKind::kNotSupported,
                      "the job's process has step marks but not the injected library");
  }
  if (ring->state() != wire::RingState::kRunning) {
    return make_error(ErrorKind::kNotSupported, "the injected library has gone quiet");
  }
  const Seconds most = std::clamp(iteration * kPasses, kLeast, kLongest);
  if (!options_.metrics_file.empty()) {
    GPOEO_TRY(const std::string metrics, read_file(options_.metrics_file, std::size_t{1} << 20));
    const auto copy = options_.ring_folder / wire::kCounterMetricsFile;
    GPOEO_TRY_STATUS(write_file_durably(
        copy, fmt::format("iteration_ns {}\n{}", to_duration(iteration).count(), metrics)));
  }
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
      return make_error(ErrorKind::kNotSupported, "the injected library has gone quiet");
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
  reading.origin = origin_of(*asked, block);
  const Instant begin = instant_from_ns(block.begin_ns), end = instant_from_ns(block.end_ns);
  reading.counted = block.covered_ns > 0 ? Seconds(static_cast<double>(block.covered_ns) * 1e-9)
                                         : to_seconds(end - begin);
  const Seconds iteration = iteration_inside(ends, begin, end, iteration_);
  if (iteration.value() > 0) {
    reading.iterations = reading.counted / iteration;
    reading.remainder = remainder_of(reading.iterations, block.passes);
  }
  return reading;
}

void RingSource::cancel() {
  if (!std::exchange(open_, false)) return;
  // A request that cannot be taken back ends by itself.
  if (const wire::RingReader* asked = ring()) static_cast<void>(asked->stop_counters(window_));
}

}  // namespace gpoeo::control
