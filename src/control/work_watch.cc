// SPDX-License-Identifier: Apache-2.0
#include "control/work_watch.h"

#include <algorithm>
#include <utility>

#include "control/observation_log.h"
#include "control/same_work.h"

namespace gpoeo::control {
namespace {

constexpr std::size_t kMostObservations = 400;
constexpr Duration kLookEach = std::chrono::milliseconds(1500);
constexpr std::ptrdiff_t kLookIterations = 3;
// So many of the newest ends tell whether work is known; one more lies before them, cut by the
// shift.
constexpr std::size_t kReturnIterations = 5;
// So many changes within so long, and nothing that is measured holds long enough to be used.
constexpr std::size_t kUnsteadyChanges = 4;
constexpr Duration kUnsteadyWithin = std::chrono::minutes(10);

}  // namespace

void WorkWatch::add(const policy::Observation& window) {
  add_bounded(present_.observations, window, kMostObservations);
}

void WorkWatch::begin(std::size_t ledger_phase) {
  present_ = Work{.observations = {}, .prior = {}, .ledger_phase = ledger_phase};
  odd_from_.reset();
}

bool WorkWatch::fits(const policy::Observation& window) const {
  return same_work(window, present_.observations, sm_clocks_);
}

WorkWatch::Seen WorkWatch::judge(const policy::Observation& window, Instant now) {
  if (!fits(window)) return leave(window, now);
  // Work that was not known by its look at the clocks held then may be known at default clocks.
  if (present_.observations.empty() && recall(window)) return Seen::kReturned;
  return Seen::kPresent;
}

std::span<const Instant> WorkWatch::look_due(std::span<const Instant> ends, Instant now) const {
  if ((looked_ && now - *looked_ < kLookEach) || present_.observations.empty()) return {};
  const auto first = std::ranges::lower_bound(ends, now - kLookEach);
  const auto newest = ends.last(std::min<std::size_t>(
      ends.size(), std::max<std::ptrdiff_t>(ends.end() - first, kLookIterations + 1)));
  return newest.size() > kLookIterations ? newest : std::span<const Instant>{};
}

WorkWatch::Look WorkWatch::judge_look(const policy::Observation& look, Instant first, Instant now) {
  looked_ = now;
  if (fits(look)) {
    odd_from_.reset();
  } else if (!odd_from_) {
    odd_from_ = first;
  } else if (first >= *odd_from_) {
    const Instant began = *odd_from_;
    return {leave(look, now), began};
  }
  return {};
}

std::span<const Instant> WorkWatch::enough_to_recognise(std::span<const Instant> ends) const {
  if (!recognise_ || known_.empty() || ends.size() <= kReturnIterations) return {};
  return ends.last(kReturnIterations);
}

bool WorkWatch::recall(const policy::Observation& look) {
  if (!recognise_) return false;
  auto known = known_.recall(look);
  if (!known) return false;
  present_ = std::move(*known);
  return true;
}

// Recalled before the present work is put aside: what did not fit must not be known again as that.
WorkWatch::Seen WorkWatch::leave(const policy::Observation& window, Instant now) {
  Work left = std::exchange(present_, Work{});
  odd_from_.reset();
  const bool known = recall(window);
  if (recognise_) known_.remember(std::move(left));
  if (known) return Seen::kReturned;
  std::erase_if(lately_, [&](Instant t) { return now - t > kUnsteadyWithin; });
  lately_.push_back(now);
  ++changes_;
  return Seen::kNew;
}

bool WorkWatch::unsteady(Instant now) const {
  return std::ranges::count_if(lately_, [&](Instant t) { return now - t <= kUnsteadyWithin; }) >=
         static_cast<std::ptrdiff_t>(kUnsteadyChanges);
}

}  // namespace gpoeo::control
