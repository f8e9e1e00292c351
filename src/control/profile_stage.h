// SPDX-License-Identifier: Apache-2.0
// States `profile` and `predict` of the control loop: from the first baseline of some work to what
// the model expects of it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/counter_choice.h"
#include "control/gpu_group.h"
#include "control/profiler.h"
#include "policy/policy.h"
#include "report/session.h"

namespace gpoeo::control {

// The model: what to expect of each setting for such work; an empty function is no model.
using Predict = std::function<std::vector<policy::Prediction>(const Profile&)>;

// Thread rule: the control thread.
class ProfileStage {
 public:
  // `gpus` must outlive it.
  ProfileStage(GpuGroup gpus, CounterOptions options, Predict predict);

  // As the profiler's.
  void baseline_begins(Instant now, Seconds iteration) {
    profiler_->baseline_begins(now, iteration);
  }
  void add_ends(std::span<const Instant> ends) { profiler_->add_ends(ends); }
  void poll(Instant now) { profiler_->poll(now); }
  void cancel() { profiler_->cancel(); }
  void new_work();

  // kLeave: iterations are not counted, so counters cannot be read over whole ones.
  enum class Counters { kRead, kLeave };
  // A baseline over [from, to] is measured. True: this work has its profile, and predictions() are
  // of it; false: counters are still being read, call again.
  bool complete(const policy::Observation& baseline, Instant now, Instant from, Instant to,
                Counters counters);
  const std::vector<policy::Prediction>& predictions() const { return predictions_; }

  // Lines for the log since the last call.
  std::vector<std::string> take_events() { return std::exchange(events_, {}); }
  // For the report, counters of a baseline that was not finished included.
  std::vector<report::ProfileSection> sections();

 private:
  GpuGroup gpus_;
  std::unique_ptr<Profiler> profiler_;
  Predict predict_;
  bool done_ = false;  // for the present work
  std::vector<policy::Prediction> predictions_;
  std::vector<report::ProfileSection> sections_;
  std::vector<std::string> events_;
};

}  // namespace gpoeo::control
