// SPDX-License-Identifier: Apache-2.0
// What a run claims to have saved against the simulator's truth: every job that the twin has, on
// each simulated card with its own sensors and noise, cold at the job's start, on virtual time.
//
//   claims [--device a100,h200] [--job NAME,...] [--seconds N] [--seeds N] [--traces] [--each]
//
// A line per card and job: the truth in the mean, how far the claims are off in the mean (points),
// half their 90 % intervals in the mean, and how many of them hold the truth. --traces: nothing is
// counted, iterations are compared by power traces. --each: a line for every run.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/chance.h"
#include "base/log.h"
#include "base/text.h"
#include "bench/priors.h"
#include "bench/run.h"
#include "bench/scratch_folder.h"
#include "twin/device_spec.h"
#include "twin/job_catalog.h"

namespace gpoeo {
namespace {

[[noreturn]] void stop(std::string_view what) {
  fmt::print(stderr, "claims: {}\n", what);
  std::exit(2);
}
template <typename T>
T value_or_stop(Result<T> result) {
  if (!result) stop(result.error().text);
  return std::move(*result);
}

struct Options {
  std::vector<std::string> devices{"a100", "h200", "rtx3080ti", "titanx", "v100"};
  std::vector<std::string> jobs;  // empty: all
  double seconds = 600;
  std::uint64_t seeds = 5;
  bool traces = false;
  bool each = false;
};

std::vector<std::string> list_of(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string_view word : split(text, ',')) words.emplace_back(word);
  return words;
}

Options read_options(std::span<char*> words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view flag = words[i];
    if (flag == "--traces") {
      options.traces = true;
      continue;
    }
    if (flag == "--each") {
      options.each = true;
      continue;
    }
    if (i + 1 == words.size()) stop(fmt::format("{} needs a value, or is unknown", flag));
    const std::string_view value = words[++i];
    if (flag == "--device") {
      options.devices = list_of(value);
    } else if (flag == "--job") {
      options.jobs = list_of(value);
    } else if (flag == "--seconds") {
      options.seconds = value_or_stop(parse_double(value));
    } else if (flag == "--seeds") {
      options.seeds = static_cast<std::uint64_t>(value_or_stop(parse_int(value)));
    } else {
      stop(fmt::format("unknown flag {}", flag));
    }
  }
  return options;
}

// Claims of one figure against its truth.
struct Score {
  int claims = 0, held = 0;
  double truth = 0, off = 0, half = 0;
  void add(const report::Figure& claim, double true_value) {
    ++claims;
    const double error = claim.value - true_value;
    const double interval = kNinety * claim.error;
    held += std::abs(error) <= interval ? 1 : 0;
    truth += true_value;
    off += error;
    half += interval;
  }
  void add(const Score& other) {
    claims += other.claims;
    held += other.held;
    truth += other.truth;
    off += other.off;
    half += other.half;
  }
  std::string line() const {
    if (claims == 0) return fmt::format("{:>7} {:>6} {:>5} {:>7}", "-", "-", "-", "-");
    const double percent = 100.0 / claims;
    return fmt::format("{:>6.1f}% {:>+6.2f} {:>5.2f} {:>7}", percent * truth, percent * off,
                       percent * half, fmt::format("{}/{}", held, claims));
  }
};

struct Scores {
  Score saving, time;
  int runs = 0;
  std::map<std::string, int> silent;  // why nothing was claimed
  void add(const Scores& other) {
    saving.add(other.saving);
    time.add(other.time);
    runs += other.runs;
    for (const auto& [why, n] : other.silent) silent[why] += n;
  }
  void print(std::string_view device, std::string_view job) const {
    std::string why;
    for (const auto& [reason, n] : silent) why += fmt::format("  {} x {}", n, reason);
    fmt::print("{:<10} {:<16} {}   {}{}\n", device, job, saving.line(), time.line(), why);
    std::fflush(stdout);
  }
};

Scores score(const bench::Suite& suite, const bench::Subject& subject, const bench::Priors& priors,
             const Options& options, const std::filesystem::path& scratch) {
  const auto policy = value_or_stop(policy::make_policy("gpoeo"));
  const auto truth = value_or_stop(bench::Truth::of(subject.job, suite.devices.front()));
  Scores scores;
  for (std::uint64_t seed = 1; seed <= options.seeds; ++seed) {
    bench::RunOptions run;
    run.job_s = options.seconds;
    run.seed = seed;
    run.state_dir = scratch;
    run.predict = priors.of(suite, subject);
    run.sensors = bench::Sensors::kDevice;
    run.warm_card = false;
    run.progress = options.traces ? bench::Progress::kTraces : bench::Progress::kLaunches;
    const auto result =
        value_or_stop(bench::run_one({{&subject, &truth}}, suite.devices.front(), *policy, run));
    ++scores.runs;
    const auto& session = result.session;
    if (session.saving) {
      scores.saving.add(session.saving->net_saving, result.net_saving);
      scores.time.add(session.saving->net_slowdown, result.net_slowdown);
    } else {
      ++scores.silent[session.no_saving_reason];
    }
    if (!options.each) continue;
    fmt::print("  seed {}: saved {:.2f} %, slower {:.2f} %;", seed, 100 * result.net_saving,
               100 * result.net_slowdown);
    if (session.saving) {
      const auto& s = *session.saving;
      fmt::print(" claimed {:.2f} +- {:.2f}, {:.2f} +- {:.2f}", 100 * s.net_saving.value,
                 100 * kNinety * s.net_saving.error, 100 * s.net_slowdown.value,
                 100 * kNinety * s.net_slowdown.error);
    }
    fmt::print(" {}\n", session.no_saving_reason);
  }
  return scores;
}

int run(const Options& options) {
  const auto scratch = value_or_stop(bench::ScratchFolder::create());
  fmt::print(
      "What runs claim and what is true: every figure is simulated. {} s at default clocks, "
      "{} seeds, {}.\n\n{:<10} {:<16} {:^28}   {:^28}\n{:<10} {:<16}",
      options.seconds, options.seeds,
      options.traces ? "by power traces alone" : "iterations counted", "", "", "net saving",
      "net slow-down", "card", "job");
  for (int i = 0; i < 2; ++i) {
    fmt::print(" {:>7} {:>6} {:>5} {:>7}  ", "truth", "off", "half", "hold it");
  }
  fmt::print("\n");
  Scores all;
  for (const std::string& device : options.devices) {
    bench::Suite suite{.name = device,
                       .origin = "the twin's jobs",
                       .devices = {value_or_stop(twin::find_device(device))},
                       .subjects = {}};
    for (const auto& entry : value_or_stop(twin::jobs_for(device))) {
      if (!options.jobs.empty() &&
          std::ranges::find(options.jobs, entry.name) == options.jobs.end())
        continue;
      suite.subjects.push_back({.name = entry.name,
                                .job = value_or_stop(twin::find_job(device, entry.name)),
                                .own_period = true,
                                .own_noise = true,
                                .family = entry.name});
    }
    const auto priors = value_or_stop(bench::Priors::train(suite));
    for (const bench::Subject& subject : suite.subjects) {
      const Scores scores = score(suite, subject, priors, options, scratch->path());
      scores.print(device, subject.name);
      all.add(scores);
    }
  }
  all.print("all", "");
  fmt::print(
      "\noff: claim minus truth in the mean, points; half: of the 90 % interval; hold it: "
      "claims whose interval holds the truth.\n");
  return 0;
}

}  // namespace
}  // namespace gpoeo

int main(int argc, char** argv) {
  gpoeo::log::set_level(gpoeo::log::Level::kError);
  return gpoeo::run(gpoeo::read_options(std::span(argv + 1, static_cast<std::size_t>(argc - 1))));
}
