// SPDX-License-Identifier: Apache-2.0
#include "policy/testing/simulated_job.h"

#include <cmath>
#include <random>

namespace gpoeo::policy::testing {
namespace {

// AR(1) with a stationary start.
class Drift {
 public:
  Drift(double sigma, double tau_s, std::mt19937_64& random) : sigma_(sigma), tau_s_(tau_s) {
    value_ = sigma_ * normal_(random);
  }
  double step(double seconds, std::mt19937_64& random) {
    const double keep = std::exp(-seconds / tau_s_);
    value_ = keep * value_ + sigma_ * std::sqrt(1 - keep * keep) * normal_(random);
    return value_;
  }

 private:
  double sigma_, tau_s_, value_ = 0;
  std::normal_distribution<double> normal_;
};

class Job {
 public:
  Job(const Response& response, const Run& run)
      : response_(response),
        run_(run),
        random_(run.seed * 0x9E3779B97F4A7C15ULL),
        time_drift_(run.noise.drift_sigma, run.noise.drift_tau_s, random_),
        power_drift_(run.noise.drift_sigma, run.noise.drift_tau_s, random_) {}

  bool done() const { return done_ >= run_.job_s / run_.iteration_s; }
  double now_s() const { return now_s_; }

  // Seconds and joules (default power = 100 W) of the next iteration.
  struct Iteration {
    double time_s, energy_j;
  };
  Iteration iterate(const ClockSetting& setting) {
    const Reply reply = setting.is_default() ? Reply{} : response_(setting);
    const double plain_s = run_.iteration_s * reply.time;
    const double drift = time_drift_.step(plain_s, random_);
    const double time_s =
        plain_s * (1 + drift) * std::max(0.2, 1 + run_.noise.time_cv * normal_(random_));
    const double samples = std::max(1.0, time_s / 0.02);
    const double power_w = 100 * reply.power * (1 + power_drift_.step(plain_s, random_)) *
                           (1 + run_.noise.power_cv / std::sqrt(samples) * normal_(random_));
    now_s_ += time_s;
    done_ += 1;
    true_time_ += reply.time;
    true_energy_ += reply.time * reply.power;
    return {time_s, time_s * power_w};
  }

  void close(Outcome& outcome) const {
    outcome.net_saving = 1 - true_energy_ / done_;
    outcome.net_slowdown = true_time_ / done_ - 1;
  }

 private:
  const Response& response_;
  const Run& run_;
  std::mt19937_64 random_;
  Drift time_drift_, power_drift_;
  std::normal_distribution<double> normal_;
  double now_s_ = 0, done_ = 0, true_time_ = 0, true_energy_ = 0;
};

struct Moments {
  double n = 0, sum = 0, squares = 0;
  void add(double x) {
    n += 1;
    sum += x;
    squares += x * x;
  }
  double mean() const { return sum / n; }
  double error() const {
    return n < 2 ? 0.05 * mean()
                 : std::sqrt(std::max(0.0, (squares / n - mean() * mean()) / (n - 1)));
  }
};

}  // namespace

Outcome simulate(const Policy& policy, const Problem& problem, const Response& response,
                 const Run& run) {
  Outcome outcome;
  Job job(response, run);
  ClockSetting in_force{};
  // The controller waits for a warm-up of its own.
  while (!job.done() && job.now_s() < 8 * run.iteration_s) job.iterate(in_force);
  while (!job.done()) {
    Decision decision = policy.decide(problem, outcome.observations);
    const bool settled = decision.purpose == Purpose::kHold || decision.purpose == Purpose::kLeave;
    if (settled && !outcome.settled_after) {
      outcome.settled_after = outcome.decisions.size();
      outcome.settled_at_s = job.now_s();
    }
    if (decision.setting != in_force) {
      in_force = decision.setting;
      ++outcome.clock_writes;
      const double until = job.now_s() + run.settle_s;
      while (!job.done() && job.now_s() < until) job.iterate(in_force);
    }
    const double began_s = job.now_s();
    Moments time, energy;
    while (!job.done()) {
      const auto i = job.iterate(in_force);
      time.add(i.time_s);
      energy.add(i.energy_j);
      const double span_s = job.now_s() - began_s;
      if (time.n < 2) continue;
      if (span_s >= decision.goal.longest.value()) break;
      const bool least = span_s >= decision.goal.least.value() &&
                         time.n >= static_cast<double>(decision.goal.least_iterations);
      const bool sharp =
          decision.goal.precision <= 0 || time.error() <= decision.goal.precision * time.mean();
      if (least && sharp) break;
    }
    outcome.decisions.push_back(std::move(decision));
    if (time.n < 2) break;
    outcome.observations.push_back({.setting = in_force,
                                    .at = Seconds((began_s + job.now_s()) / 2),
                                    .iterations = static_cast<std::size_t>(time.n),
                                    .time = Seconds(time.mean()),
                                    .time_error = Seconds(time.error()),
                                    .energy = Joules(energy.mean()),
                                    .energy_error = Joules(energy.error()),
                                    .held = in_force.is_default() || response(in_force).held});
  }
  // The clock that is held: what a probe or a fresh baseline at the end interrupts still counts.
  for (const Decision& d : outcome.decisions) {
    if (d.purpose == Purpose::kHold || d.purpose == Purpose::kLeave) outcome.held = d.setting;
  }
  if (!outcome.held.is_default()) {
    const Reply reply = response(outcome.held);
    outcome.steady_saving = 1 - reply.time * reply.power;
    outcome.steady_slowdown = reply.time - 1;
  }
  job.close(outcome);
  return outcome;
}

Best oracle(const Problem& problem, const Response& response) {
  Best best;
  const auto consider = [&](const ClockSetting& setting) {
    const Reply reply = response(setting);
    if (reply.time > 1 + problem.max_slowdown) return;
    const double saving = 1 - reply.time * reply.power;
    if (saving > best.saving) best = {setting, saving};
  };
  for (const Hertz f : problem.sm_clocks) consider({.sm = f});
  for (const MemoryGear& gear : problem.memory_gears) {
    for (const Hertz f : gear.sm_clocks) consider({.sm = f, .memory = gear.memory});
  }
  return best;
}

Response of_sm_clock(std::function<Reply(Hertz)> reply) {
  return [reply = std::move(reply)](const ClockSetting& setting) { return reply(*setting.sm); };
}

std::vector<Hertz> a100_clocks() {
  std::vector<Hertz> clocks;
  for (int mhz = 210; mhz <= 1410; mhz += 15) clocks.push_back(megahertz(mhz));
  return clocks;
}

}  // namespace gpoeo::policy::testing
