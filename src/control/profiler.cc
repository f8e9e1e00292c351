// SPDX-License-Identifier: Apache-2.0
#include "control/profiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gpoeo::control {
namespace {

constexpr policy::MeasureGoal kGoal{
    .least_iterations = 3, .least = Seconds(3), .longest = Seconds(20), .precision = 0};
// A source that has not answered by then never will.
constexpr Duration kLongest = std::chrono::seconds(45);
// A window whose end is not ours to choose: all ends until there is an answer.
constexpr policy::MeasureGoal kUntilAnswered{
    .least_iterations = 3, .least = Seconds(60), .longest = Seconds(60), .precision = 0};
// Two windows of one work differ by less than this at the same clocks.
constexpr double kSame = 0.04;
constexpr std::size_t kMostKnown = 32;

}  // namespace

std::string_view to_string(CounterOrigin origin) {
  switch (origin) {
    case CounterOrigin::kNone:
      return "none";
    case CounterOrigin::kGpm:
      return "GPM";
    case CounterOrigin::kPmSampling:
      return "CUPTI PM sampling";
    case CounterOrigin::kTwinJob:
      return "twin job";
  }
  return "unknown";
}

std::string Profiler::source_note() const {
  if (never_there_.empty() || failed_.empty()) return never_there_ + failed_;
  return never_there_ + "; " + failed_;
}

void Profiler::begin(Instant now) {
  while (!exhausted()) {
    const Status begun = source().begin(now, iteration_);
    if (begun) {
      began_ = now;
      window_.emplace(source().free_of_cost() ? kGoal : kUntilAnswered, now);
      return;
    }
    failed_ += fmt::format("{}{}: {}", failed_.empty() ? "" : "; ", sources_[current_].name,
                           begun.error().text);
    ++current_;
  }
  window_.reset();
}

void Profiler::give_up_source(const std::string& why, Instant now) {
  source().cancel();
  failed_ += fmt::format("{}{}: {}", failed_.empty() ? "" : "; ", sources_[current_].name, why);
  ++current_;
  begin(now);
}

void Profiler::baseline_begins(Instant now, Seconds iteration) {
  iteration_ = iteration;
  if (profile_ || reading() || exhausted()) return;
  if (source().free_of_cost()) begin(now);
}

void Profiler::add_ends(std::span<const Instant> ends) {
  if (window_) window_->add(ends);
}

void Profiler::poll(Instant now) {
  if (!reading()) return;
  const auto answer = source().poll(now, window_->ends(), window_->ready());
  if (!answer) {
    if (now - began_ > kLongest) give_up_source("no answer", now);
    return;
  }
  if (!*answer) {
    give_up_source(answer->error().text, now);
    return;
  }
  const CounterReading& reading = **answer;
  source().cancel();
  window_.reset();
  Profile& p = profile_.emplace();
  p.activity = reading.activity;
  p.origin = reading.origin;
  p.iterations = reading.iterations;
  p.counted = reading.counted;
  p.remainder = reading.remainder;
  if (p.activity.gr_active) p.host_share = std::clamp(1 - *p.activity.gr_active, 0.0, 1.0);
}

const Profiler::Known* Profiler::recall(const Signature& signature) const {
  const auto same = std::ranges::find_if(known_, [&](const Known& k) {
    return std::abs(k.signature.time / signature.time - 1) < kSame &&
           std::abs(k.signature.power / signature.power - 1) < kSame;
  });
  return same == known_.end() ? nullptr : &*same;
}

bool Profiler::baseline_ready(Instant now, const Signature& signature) {
  if (complete_) return true;
  if (!profile_ && !reading()) {
    if (const Known* known = recall(signature)) {
      profile_ = known->profile;
      profile_->recalled = true;
      complete_ = true;
      return true;
    }
    begin(now);
    if (!reading()) profile_.emplace();  // none is left: utilisation and power only
  }
  if (reading()) return false;
  profile_->why = source_note();
  complete_ = true;
  if (known_.size() < kMostKnown) known_.push_back({signature, *profile_});
  return true;
}

void Profiler::cancel() {
  if (reading()) source().cancel();
  window_.reset();
  if (!complete_) profile_.reset();
}

void Profiler::new_work() {
  cancel();
  profile_.reset();
  complete_ = false;
  current_ = 0;  // what failed then may answer now
  failed_.clear();
}

}  // namespace gpoeo::control
