// SPDX-License-Identifier: Apache-2.0
// Periods and slow-downs from power traces: how often right, how sure, how well the intervals
// cover. On windows cut at random out of the recordings and on synthetic jobs of all kinds.
//
// usage: iteration_traces [SHARED_FOLDER]     (default ../shared)
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "iteration/period.h"
#include "iteration/slowdown.h"
#include "iteration/testing/power_traces.h"
#include "recordings.h"

namespace gpoeo::bench {
namespace {

using iteration::PowerTrace;
using iteration::testing::JobOptions;

constexpr int kWindowsOfEach = 40;
constexpr int kSyntheticJobs = 1500;

double uniform(std::mt19937_64& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}
double log_uniform(std::mt19937_64& random, double low, double high) {
  return std::exp(uniform(random, std::log(low), std::log(high)));
}

// Answers by how sure they were.
class Calibration {
 public:
  void add(const iteration::PeriodEstimate& estimate, bool right, bool knowable) {
    ++asked_;
    knowable_ += knowable;
    if (!estimate.period_s) return;
    const auto bin = std::min(kBins - 1, static_cast<std::size_t>(estimate.confidence * kBins));
    ++answered_[bin];
    right_[bin] += right;
    sure_[bin] += estimate.confidence;
  }
  void print(const std::string& title) const {
    fmt::print("{}: {} traces, {} with a period that can be known\n", title, asked_, knowable_);
    for (std::size_t bin = 0; bin < kBins; ++bin) {
      if (answered_[bin] == 0) continue;
      fmt::print("  confidence {:.2f}: {:4} answers, {:.2f} right\n", sure_[bin] / answered_[bin],
                 answered_[bin], static_cast<double>(right_[bin]) / answered_[bin]);
    }
  }

 private:
  static constexpr std::size_t kBins = 10;
  int asked_ = 0, knowable_ = 0;
  std::array<int, kBins> answered_{}, right_{};
  std::array<double, kBins> sure_{};
};

// Errors of slow-downs and how often the interval held the truth.
class Coverage {
 public:
  void add(const iteration::SlowdownEstimate& estimate, double truth) {
    ++asked_;
    if (!estimate.time_ratio) return;
    errors_.push_back(std::abs(*estimate.time_ratio - truth));
    halves_.push_back((estimate.high - estimate.low) / 2);
    covered_ += estimate.low <= truth && truth <= estimate.high;
  }
  void print(const std::string& title) {
    if (errors_.empty()) {
      fmt::print("  {:28} {:4} pairs, all refused\n", title, asked_);
      return;
    }
    std::ranges::sort(errors_);
    std::ranges::sort(halves_);
    fmt::print(
        "  {:28} {:4} pairs, {:3} refused, error median {:.2f} p90 {:.2f} points, interval "
        "+-{:.2f} covers {:.2f}\n",
        title, asked_, asked_ - static_cast<int>(errors_.size()), 100 * errors_[errors_.size() / 2],
        100 * errors_[errors_.size() * 9 / 10], 100 * halves_[halves_.size() / 2],
        static_cast<double>(covered_) / static_cast<double>(errors_.size()));
  }

 private:
  int asked_ = 0, covered_ = 0;
  std::vector<double> errors_, halves_;
};

bool is_close(double period_s, double truth_s) { return std::abs(period_s / truth_s - 1) <= 0.01; }

// As score_traces.py judges, but by the mean of the window's own iterations where it has some.
bool is_accepted(const Recording& r, double period_s, double from, double to) {
  if (r.kind == "drift") return r.accepted_s[0] <= period_s && period_s <= r.accepted_s[1];
  const auto mean = mean_iteration_s(r.end_s, from, to);
  if (r.kind == "regular" && mean && is_close(period_s, *mean)) return true;
  return std::ranges::any_of(r.accepted_s, [&](double t) { return is_close(period_s, t); });
}

void periods_of_windows(const std::vector<Recording>& recordings) {
  std::mt19937_64 random(1);
  Calibration calibration;
  for (const Recording& r : recordings) {
    if (r.kind == "shift") continue;
    const double first = std::max(r.trace.t_s.front(), r.end_s.front());
    const double last = std::min(r.trace.t_s.back(), r.end_s.back());
    for (int i = 0; i < kWindowsOfEach; ++i) {
      const double length = uniform(random, 5, last - first);
      const double from = uniform(random, first, last - length);
      const auto estimate = iteration::estimate_period(cut(r.trace, from, from + length, 1));
      const bool right =
          estimate.period_s && is_accepted(r, *estimate.period_s, from, from + length);
      calibration.add(estimate, right, r.kind == "regular" || r.kind == "accum");
    }
  }
  calibration.print("periods, windows of 5 s and more of the recordings");
}

JobOptions random_job(std::mt19937_64& random) {
  JobOptions o;
  o.seed = random();
  o.profile_seed = random();
  o.period_s = log_uniform(random, 0.03, 4);
  o.duration_s = uniform(random, 5, 25);
  o.sample_s = log_uniform(random, 0.01, 0.1);
  o.segments = static_cast<int>(uniform(random, 2, 8));
  o.swing_w = log_uniform(random, 10, 400);
  o.noise_w = log_uniform(random, 2, 40);
  o.jitter = log_uniform(random, 0.001, 0.05);
  o.drift_w_per_s = uniform(random, -1, 1);
  if (uniform(random, 0, 1) < 0.25) {
    o.pause_every = static_cast<int>(uniform(random, 5, 60));
    o.pause_s = uniform(random, 0.2, 2) * o.period_s;
  }
  return o;
}

void periods_of_jobs() {
  std::mt19937_64 random(2);
  Calibration calibration;
  for (int i = 0; i < kSyntheticJobs; ++i) {
    const JobOptions o = random_job(random);
    const auto job = iteration::testing::make_job(o);
    const auto estimate = iteration::estimate_period(job.trace);
    const auto mean = mean_iteration_s(job.end_s, 0, o.duration_s);
    // With pauses, one iteration and the cycle from pause to pause are both right.
    const double cycle_s = o.pause_every * o.period_s + o.pause_s;
    const bool right = estimate.period_s && ((mean && is_close(*estimate.period_s, *mean)) ||
                                             is_close(*estimate.period_s, o.period_s) ||
                                             is_close(*estimate.period_s, cycle_s));
    calibration.add(estimate, right, o.period_s >= 4 * o.sample_s && o.period_s < o.duration_s / 4);
  }
  calibration.print("periods, synthetic jobs (30 ms to 4 s, sampled at 10 to 100 ms)");
}

void slowdowns_of_windows(const std::vector<Recording>& recordings) {
  fmt::print("slow-downs, second half of each recording stretched by -5 to +25 %\n");
  std::mt19937_64 random(3);
  Coverage all, drifting;
  for (const Recording& r : recordings) {
    if (r.kind != "regular" && r.kind != "accum" && r.kind != "drift") continue;
    Coverage own;
    const double first = std::max(r.trace.t_s.front(), r.end_s.front());
    const double last = std::min(r.trace.t_s.back(), r.end_s.back());
    for (int i = 0; i < kWindowsOfEach; ++i) {
      const double length = uniform(random, 0.4, 0.5) * (last - first);
      const double from = first + uniform(random, 0, 1) * (last - first - 2 * length);
      const double middle = from + length;
      const double stretch = uniform(random, 0.95, 1.25);
      const auto t1 = mean_iteration_s(r.end_s, from, middle);
      const auto t2 = mean_iteration_s(r.end_s, middle, middle + length);
      if (!t1 || !t2) continue;
      const auto estimate = iteration::compare_traces(
          cut(r.trace, from, middle, 1), cut(r.trace, middle, middle + length, stretch));
      const double truth = *t2 / *t1 * stretch;
      own.add(estimate, truth);
      (r.kind == "drift" ? drifting : all).add(estimate, truth);
    }
    own.print(r.name);
  }
  all.print("all regular and accumulating");
  drifting.print("all drifting");
}

void slowdowns_of_jobs() {
  fmt::print("slow-downs, synthetic jobs\n");
  std::mt19937_64 random(4);
  Coverage all;
  for (int i = 0; i < kSyntheticJobs; ++i) {
    JobOptions o = random_job(random);
    const auto a = iteration::testing::make_job(o);
    o.stretch = uniform(random, 0.95, 1.3);
    o.seed = random();
    const auto b = iteration::testing::make_job(o);
    const auto t1 = mean_iteration_s(a.end_s, 0, o.duration_s);
    const auto t2 = mean_iteration_s(b.end_s, 0, o.duration_s);
    if (!t1 || !t2) continue;
    // Unresolvable rhythms (aliases) are the business of the caller, who knows the sampling.
    if (o.period_s < iteration::kLeastSamplesPerPeriod * o.sample_s || o.pause_every > 0) continue;
    all.add(iteration::compare_traces(a.trace, b.trace), *t2 / *t1);
  }
  all.print("all");
}

}  // namespace
}  // namespace gpoeo::bench

int main(int argc, char** argv) {
  using namespace gpoeo::bench;
  const auto recordings = read_recordings(argc > 1 ? argv[1] : "../shared");
  const std::clock_t start = std::clock();
  if (!recordings.empty()) periods_of_windows(recordings);
  periods_of_jobs();
  if (!recordings.empty()) slowdowns_of_windows(recordings);
  slowdowns_of_jobs();
  fmt::print("CPU {:.1f} s\n", static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
}
