// SPDX-License-Identifier: Apache-2.0
#include "control/profile_stage.h"

#include <fmt/format.h>

namespace gpoeo::control {
namespace {

constexpr std::size_t kMostSections = 32;

// Fills what the driver says beside the counters.
void complete_profile(Profile& profile, const GpuChannel& gpu, Instant from, Instant to) {
  if (const auto limit = gpu.device().power_limit()) profile.power_limit = *limit;
  const auto condition = gpu.condition(from, to);
  profile.gpu_utilization = condition.gpu_utilization;
  profile.memory_utilization = condition.memory_utilization;
  profile.sm_clock = condition.sm_clock;
  profile.memory_clock = condition.memory_clock;
}

report::ProfileSection section_of(const Profile& p) {
  report::ProfileSection s;
  s.source = std::string(to_string(p.origin));
  s.why = p.why;
  s.activity = p.activity;
  s.iterations = p.iterations;
  s.seconds = p.counted.value();
  s.remainder = p.remainder;
  s.recalled = p.recalled;
  if (p.time.value() > 0) {
    s.time_s = p.time.value();
    s.power_w = p.power.value();
  }
  if (p.power_limit) s.power_limit_w = p.power_limit->value();
  s.gpu_utilization = p.gpu_utilization;
  s.memory_utilization = p.memory_utilization;
  if (p.sm_clock) s.sm_mhz = to_mhz(*p.sm_clock);
  if (p.memory_clock) s.memory_mhz = to_mhz(*p.memory_clock);
  s.host_share = p.host_share;
  return s;
}

std::string describe(const Profile& p) {
  if (p.origin == CounterOrigin::kNone) return "profile: no counters: " + p.why;
  std::string text = fmt::format("profile: {}{} over {:.1f} iterations", to_string(p.origin),
                                 p.recalled ? ", read earlier," : "", p.iterations);
  for (const char* name : {"sm_active", "tensor_active", "dram_active"}) {
    if (const auto& value = p.activity.*find_activity(name)->field) {
      text += fmt::format(", {} {:.2f}", name, *value);
    }
  }
  return text;
}

}  // namespace

ProfileStage::ProfileStage(GpuGroup gpus, CounterOptions options, Predict predict)
    : gpus_(gpus),
      profiler_(make_profiler(gpus, std::move(options))),
      predict_(std::move(predict)) {}

void ProfileStage::new_work() {
  profiler_->new_work();
  predictions_.clear();
  done_ = false;
}

bool ProfileStage::complete(const policy::Observation& baseline, Instant now, Instant from,
                            Instant to, Counters counters) {
  if (done_) return true;
  const Watts power = baseline.energy / baseline.time / static_cast<double>(gpus_.size());
  Profile profile;
  if (counters == Counters::kLeave) {
    profile.why = "iterations are not counted, so counters cannot be read over whole ones";
  } else {
    if (!profiler_->baseline_ready(now, {.time = baseline.time, .power = power})) return false;
    profile = *profiler_->profile();
  }
  done_ = true;
  profile.time = baseline.time;
  profile.power = power;
  complete_profile(profile, *gpus_.front(), from, to);
  if (sections_.size() < kMostSections) sections_.push_back(section_of(profile));
  events_.push_back(describe(profile));
  if (predict_) predictions_ = predict_(profile);
  if (!predictions_.empty()) {
    events_.push_back(
        fmt::format("predict: the model expects something of {} settings", predictions_.size()));
  }
  return true;
}

std::vector<report::ProfileSection> ProfileStage::sections() {
  std::vector<report::ProfileSection> sections = sections_;
  if (!done_ && profiler_->profile()) sections.push_back(section_of(*profiler_->profile()));
  return sections;
}

}  // namespace gpoeo::control
