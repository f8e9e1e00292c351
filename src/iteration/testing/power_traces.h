// SPDX-License-Identifier: Apache-2.0
// Power traces of jobs whose iterations are known, for tests and benchmarks. Seeded; the same on
// every machine with the same standard library.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "iteration/series.h"

namespace gpoeo::iteration::testing {

struct JobOptions {
  double period_s = 0.4;
  double duration_s = 22;
  double sample_s = 0.02;
  double sample_jitter = 0.1;  // of sample_s, standard deviation of each time stamp
  double mean_w = 500;
  double swing_w = 120;  // between the highest and lowest segment
  int segments = 4;      // of constant power in an iteration
  double noise_w = 6;
  double jitter = 0.01;  // coefficient of variation of an iteration's time
  double drift_w_per_s = 0;
  double rate_drift = 0;  // relative change of the period over the trace
  int pause_every = 0;    // iterations; 0 = never
  double pause_s = 0;
  double pause_w = 150;
  double stretch = 1;              // of all iteration times (a slower clock)
  std::uint64_t profile_seed = 1;  // shape of the iteration
  std::uint64_t seed = 1;          // noise and jitter
};

struct Job {
  PowerTrace trace;
  std::vector<double> end_s;  // of the iterations
};

inline std::vector<double> iteration_profile(const JobOptions& o) {
  std::mt19937_64 random(o.profile_seed * 7919 + 13);
  std::uniform_real_distribution<double> level(-0.5, 0.5);
  std::vector<double> profile;
  for (int i = 0; i < o.segments; ++i) profile.push_back(level(random));
  // However the levels fell, the swing is as asked for.
  double low = profile[0], high = profile[0];
  for (const double v : profile) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
  if (o.segments == 1 || high - low < 1e-3) return {-o.swing_w / 2, o.swing_w / 2};
  for (double& v : profile) v = ((v - low) / (high - low) - 0.5) * o.swing_w;
  return profile;
}

struct IterationSpan {
  double begin_s = 0, end_s = 0;
};

// The first iteration is under way at time 0.
inline std::vector<IterationSpan> make_iterations(const JobOptions& o, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::vector<IterationSpan> spans;
  double t = -std::uniform_real_distribution<double>(0, o.period_s)(random);
  while (t < o.duration_s) {
    const double drifted = o.period_s * (1 + o.rate_drift * t / o.duration_s);
    const double length = o.stretch * drifted * std::max(0.2, 1 + o.jitter * normal(random));
    spans.push_back({t, t + length});
    t += length;
    if (o.pause_every > 0 && spans.size() % static_cast<std::size_t>(o.pause_every) == 0) {
      t += o.pause_s;
    }
  }
  return spans;
}

inline Job make_job(const JobOptions& o) {
  std::mt19937_64 random(o.seed * 104729 + 7);
  std::normal_distribution<double> normal;
  const std::vector<double> profile = iteration_profile(o);
  const std::vector<IterationSpan> spans = make_iterations(o, random);
  Job job;
  for (const IterationSpan& span : spans) {
    if (span.end_s <= o.duration_s) job.end_s.push_back(span.end_s);
  }
  // A sample is the mean over the time since the one before, taken in fine steps.
  constexpr int kFine = 8;
  std::size_t span = 0;
  for (double t = 0; t < o.duration_s; t += o.sample_s) {
    double sum = 0;
    for (int f = 0; f < kFine; ++f) {
      const double at = t + o.sample_s * (f + 0.5) / kFine;
      while (span + 1 < spans.size() && at >= spans[span + 1].begin_s) ++span;
      const double phase = (at - spans[span].begin_s) / (spans[span].end_s - spans[span].begin_s);
      const auto segment = static_cast<std::size_t>(phase * static_cast<double>(profile.size()));
      sum += segment < profile.size() ? o.mean_w + profile[segment] : o.pause_w;
    }
    const double stamp = t + o.sample_s * (1 + o.sample_jitter * normal(random));
    const double noise = o.noise_w * normal(random);
    if (!job.trace.t_s.empty() && stamp <= job.trace.t_s.back()) continue;
    job.trace.t_s.push_back(stamp);
    job.trace.power_w.push_back(sum / kFine + o.drift_w_per_s * t + noise);
  }
  return job;
}

}  // namespace gpoeo::iteration::testing
