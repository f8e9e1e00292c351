// SPDX-License-Identifier: Apache-2.0
#include "counter_answer.h"

#include <random>

#include "base/activity.h"

namespace gpoeo::twin_job {
namespace {

// Repeated CUPTI windows of one loop on an H200 scattered by about this much (docs/hardware.md).
constexpr double kNoiseCv = 0.005;

std::uint32_t number_of(twin::Activity activity) {
  // The twin's activities are the first ten words, in their order.
  return static_cast<std::uint32_t>(activity) + 1;
}
static_assert(find_activity("gr_active")->number ==
              static_cast<std::uint32_t>(twin::Activity::kGrActive) + 1);
static_assert(find_activity("dram_active")->number ==
              static_cast<std::uint32_t>(twin::Activity::kDramActive) + 1);
static_assert(find_activity("pcie_rx_bytes_per_s")->number ==
              static_cast<std::uint32_t>(twin::Activity::kPcieRxBytesPerS) + 1);

}  // namespace

Status CounterAnswer::poll() {
  const std::uint64_t asked = ring_->requested_window();
  if (!window_ && asked > newest_) {
    newest_ = asked;
    GPOEO_TRY(const twin::GpmSnapshot begin, card_.counters_in_process());
    window_ = Window{asked, begin};
    return {};
  }
  if (!window_) return {};
  GPOEO_TRY(const twin::GpmSnapshot end, card_.counters_in_process());
  const auto passed = static_cast<std::uint64_t>((end.time - window_->begin.time).count());
  if (ring_->stopped_window() < window_->number && passed < ring_->most_window_ns()) return {};
  publish(end);
  window_.reset();
  return {};
}

void CounterAnswer::publish(const twin::GpmSnapshot& end) const {
  wire::CounterBlock answer;
  answer.window = window_->number;
  answer.begin_ns = to_unix_ns(window_->begin.time);
  answer.end_ns = to_unix_ns(end.time);
  answer.device_ordinal = card_.index();
  answer.source = wire::CounterSourceId::kPmSampling;
  answer.passes = 1;
  const double seconds = to_seconds(end.time - window_->begin.time).value();
  if (seconds <= 0) {
    answer.error = wire::CounterError::kTooShort;
  } else {
    std::mt19937_64 random(seed_ + window_->number);
    std::normal_distribution<double> noise(1, kNoiseCv);
    for (int i = 0; i < twin::kActivityCount; ++i) {
      const double mean = (end.integral[i] - window_->begin.integral[i]) / seconds;
      answer.values[answer.count++] = {.metric = number_of(static_cast<twin::Activity>(i)),
                                       .value = mean * noise(random)};
    }
  }
  ring_->publish_counters(answer);
}

}  // namespace gpoeo::twin_job
