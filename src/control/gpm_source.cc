// SPDX-License-Identifier: Apache-2.0
#include "control/gpm_source.h"

#include <algorithm>

#include "control/mean_activity.h"

namespace gpoeo::control {
namespace {

// Twice the period in which the driver moves the values: each call finds a step, at half the calls.
constexpr Duration kReadEach = std::chrono::milliseconds(200);

}  // namespace

Status GpmSource::begin(Instant, Seconds) {
  for (GpuChannel* gpu : gpus_) gpu->count_activity(kReadEach);
  return {};
}

void GpmSource::cancel() {
  for (GpuChannel* gpu : gpus_) gpu->count_activity(std::nullopt);
}

std::optional<Result<CounterReading>> GpmSource::poll(Instant, std::span<const Instant> ends,
                                                      bool enough) {
  if (!enough) return std::nullopt;
  CounterReading mean;
  mean.origin = CounterOrigin::kGpm;
  std::vector<Activity> all;
  std::optional<Error> error;
  for (GpuChannel* gpu : gpus_) {
    const auto average = gpu->activity(ends);
    if (!average) {
      error = average.error();
      continue;
    }
    all.push_back(average->activity);
    mean.counted = to_seconds(average->to - average->from);
    mean.iterations = average->iterations;
    mean.remainder = std::max(mean.remainder, average->remainder);
  }
  cancel();
  if (all.empty()) {
    return Result<CounterReading>(
        std::unexpected(error.value_or(Error{ErrorKind::kNotFound, "no GPU to read counters of"})));
  }
  mean.activity = mean_activity(all);
  return Result<CounterReading>(mean);
}

}  // namespace gpoeo::control
