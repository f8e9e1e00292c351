// SPDX-License-Identifier: Apache-2.0
#include "control/energy_book.h"

#include <algorithm>

namespace gpoeo::control {
namespace {

// Long enough for the meter to be sure, short against the history it works on.
constexpr Duration kStretch = std::chrono::seconds(5);
// What cannot be closed within this is given up, so that one hole does not swallow the rest.
constexpr Duration kGiveUp = std::chrono::seconds(30);
// Where iterations are counted, none that ended longer ago than this is still on its way.
constexpr Duration kEndsLate = std::chrono::seconds(2);
// At the end of a job the last stretch reaches back from its end in such steps, at most so far.
constexpr Duration kCloseStep = std::chrono::milliseconds(50);
constexpr Duration kCloseReach = std::chrono::seconds(3);
// More than this are only waiting where no energy can be read.
constexpr std::size_t kMostCuts = 256;

}  // namespace

void EnergyBook::cut_at(Instant at) {
  if (at <= booked_to_ || cuts_.size() >= kMostCuts) return;
  // One that is being closed further on is not closed yet.
  if (closing_at_ && at < *closing_at_) closing_at_.reset();
  const auto place = std::ranges::lower_bound(cuts_, at);
  if (place == cuts_.end() || *place != at) cuts_.insert(place, at);
}

// It opens with the first readings: before them nothing is known.
bool EnergyBook::open() {
  const auto& power = sampler_.history().power;
  const auto& counter = sampler_.history().energy;
  if (power.empty() && counter.empty()) return false;
  booked_to_ = power.empty() ? counter.front().time : power.front().time;
  open_ = true;
  drop_passed_cuts();
  return true;
}

void EnergyBook::drop_passed_cuts() {
  while (!cuts_.empty() && cuts_.front() <= booked_to_) cuts_.pop_front();
}

std::optional<EnergyStretch> EnergyBook::book(Instant to) {
  const auto window = meter_.energy(booked_to_, to);
  if (!window) return std::nullopt;
  const EnergyStretch stretch{booked_to_, to, window->energy, window->uncertainty};
  energy_ += window->energy;
  duration_ += to_seconds(to - booked_to_);
  booked_to_ = to;
  closing_at_.reset();
  drop_passed_cuts();
  return stretch;
}

std::optional<EnergyStretch> EnergyBook::poll(Instant now) {
  if (!open_ && !open()) return std::nullopt;
  if (!closing_at_) {
    if (!cuts_.empty()) {
      closing_at_ = cuts_.front();
    } else if (now - booked_to_ < kStretch) {
      return std::nullopt;
    } else if (!newest_end_) {
      closing_at_ = now;
    } else {
      closing_at_ = *newest_end_ > booked_to_ ? *newest_end_ : now - kEndsLate;
    }
  }
  if (auto stretch = book(*closing_at_)) return stretch;
  sampler_.request_readings();
  sampler_.request_energy_mark();
  if (now - *closing_at_ > kGiveUp) {
    hole_ = to_seconds(now - booked_to_);
    booked_to_ = now;
    closing_at_.reset();
    drop_passed_cuts();
  }
  return std::nullopt;
}

std::vector<EnergyStretch> EnergyBook::close(Instant now) {
  std::vector<EnergyStretch> stretches;
  if (!open_ && !open()) return stretches;
  while (!cuts_.empty()) {
    const Instant cut = cuts_.front();
    cuts_.pop_front();
    if (auto stretch = book(cut)) stretches.push_back(*stretch);
  }
  // As far as readings reach: the job's end does not wait for the counter's next tick.
  for (Instant to = now; to > booked_to_ && to > now - kCloseReach; to -= kCloseStep) {
    if (auto stretch = book(to)) {
      stretches.push_back(*stretch);
      break;
    }
  }
  return stretches;
}

}  // namespace gpoeo::control
