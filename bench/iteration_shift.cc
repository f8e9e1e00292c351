// SPDX-License-Identifier: Apache-2.0
// Shift detection: on every recording, and on 8 hours of steady synthetic training with thermal
// drift, jitter, validation and checkpoints, for several seeds. Prints each shift it reports.
//
// usage: iteration_shift [SHARED_FOLDER]     (default ../shared)
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "iteration/shift.h"
#include "iteration/testing/power_traces.h"
#include "recordings.h"

namespace gpoeo::bench {
namespace {

using iteration::Shift;
using iteration::ShiftDetector;

constexpr int kSeeds = 5;
constexpr double kHours = 8;

// When the iterations of a recording change, by its log: the gap after which their mean time
// differs most from that before.
double shift_in_log_s(const std::vector<double>& end_s) {
  double best = 0, at = 0;
  for (std::size_t i = 20; i + 20 < end_s.size(); ++i) {
    const double before = (end_s[i] - end_s.front()) / static_cast<double>(i);
    const double after = (end_s.back() - end_s[i]) / static_cast<double>(end_s.size() - 1 - i);
    const double share = static_cast<double>(i) / static_cast<double>(end_s.size());
    const double change = std::abs(std::log(after / before)) * std::sqrt(share * (1 - share));
    if (change > best) {
      best = change;
      at = end_s[i];
    }
  }
  return at;
}

void recordings(const std::string& shared) {
  int alarms = 0, steady = 0;
  for (const Recording& r : read_recordings(shared)) {
    ShiftDetector detector(1);
    const bool shifts = r.kind == "shift";
    steady += !shifts;
    for (std::size_t i = 0; i < r.trace.t_s.size(); ++i) {
      const auto shift = detector.push(r.trace.t_s[i], std::span(&r.trace.power_w[i], 1));
      if (!shift) continue;
      alarms += !shifts;
      const double truth = shift_in_log_s(r.end_s);
      fmt::print(
          "{}: shift noticed at {:.2f} s (began {:.2f} s){}\n", r.name, shift->noticed_s,
          shift->began_s,
          shifts ? fmt::format(", truth {:.2f} s, {:.2f} s later", truth, shift->noticed_s - truth)
                 : ", FALSE ALARM");
    }
  }
  fmt::print("recordings without a shift: {}, false alarms: {}\n", steady, alarms);
}

// Eight hours of one job, sample by sample.
class SteadyJob {
 public:
  explicit SteadyJob(std::uint64_t seed) : random_(seed) {
    options_.period_s = 0.2 + 0.35 * static_cast<double>(seed);
    options_.profile_seed = seed;
    profile_ = iteration::testing::iteration_profile(options_);
  }

  double sample(double t_s, double step_s) {
    wander(step_s);
    choose_activity(t_s);
    const double warm_up_w = 25 * (1 - std::exp(-t_s / 900));
    return power_w(t_s) + warm_up_w + drift_w_ + options_.noise_w * normal_(random_);
  }

 private:
  enum class Activity { kTraining, kValidation, kCheckpoint };

  // AR(1) drift, 8 W with a time constant of 10 minutes.
  void wander(double step_s) {
    const double share = step_s / 600;
    drift_w_ += -drift_w_ * share + 8 * std::sqrt(2 * share) * normal_(random_);
  }
  void choose_activity(double t_s) {
    if (activity_ != Activity::kTraining && t_s >= until_s_) {
      activity_ = Activity::kTraining;
      begin_s_ = t_s;
    }
    if (activity_ != Activity::kTraining) return;
    if (t_s >= next_validation_s_) {
      activity_ = Activity::kValidation;
      until_s_ = t_s + uniform(10, 30);
      next_validation_s_ = t_s + uniform(300, 360);
    } else if (t_s >= next_checkpoint_s_) {
      activity_ = Activity::kCheckpoint;
      until_s_ = t_s + uniform(4, 12);
      next_checkpoint_s_ = t_s + 1800;
    }
  }
  double power_w(double t_s) {
    if (activity_ == Activity::kCheckpoint) return 140;
    if (activity_ == Activity::kValidation) {
      return 0.85 * options_.mean_w + (std::fmod(t_s, 0.1) < 0.05 ? 20 : -20);
    }
    while (t_s >= begin_s_ + length_s_) {
      begin_s_ += length_s_;
      length_s_ = options_.period_s * (1 + 0.02 * normal_(random_));
    }
    const double phase = (t_s - begin_s_) / length_s_ * static_cast<double>(profile_.size());
    const auto segment = std::min(profile_.size() - 1, static_cast<std::size_t>(phase));
    return options_.mean_w + profile_[segment];
  }
  double uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }

  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  iteration::testing::JobOptions options_;
  std::vector<double> profile_;
  Activity activity_ = Activity::kTraining;
  double drift_w_ = 0, begin_s_ = 0, length_s_ = 0.1, until_s_ = 0;
  double next_validation_s_ = 300, next_checkpoint_s_ = 1800;
};

void steady_training() {
  int alarms = 0;
  const std::clock_t start = std::clock();
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SteadyJob job(seed);
    ShiftDetector detector(1);
    constexpr double kStep_s = 0.02;
    for (double t_s = 0; t_s < kHours * 3600; t_s += kStep_s) {
      const double power_w = job.sample(t_s, kStep_s);
      const auto shift = detector.push(t_s, std::span(&power_w, 1));
      if (!shift) continue;
      ++alarms;
      fmt::print("seed {}: FALSE ALARM at {:.1f} s\n", seed, shift->noticed_s);
    }
  }
  fmt::print(
      "{} x {} h of steady training with validation and checkpoints: {} false alarms, "
      "{:.2f} s CPU\n",
      kSeeds, kHours, alarms, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
}

}  // namespace
}  // namespace gpoeo::bench

int main(int argc, char** argv) {
  gpoeo::bench::recordings(argc > 1 ? argv[1] : "../shared");
  gpoeo::bench::steady_training();
}
