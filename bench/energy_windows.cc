// SPDX-License-Identifier: Apache-2.0
// How well does the energy meter know the energy of a window? Every shipped job on its simulated
// card, seen through the sensor habits of an H200 and of an A100, against the twin's truth.
// Everything here is simulated.
//
//   energy_windows [--seconds N] [--seeds N] [--limit PERCENT]
//
// Prints the worst error and its distribution for windows of 3, 5 and 10 s, with an energy counter
// that is free and with one that costs 6 ms a call as on an H200. Windows lie anywhere, not on
// ticks or samples. Exit status 1 when the worst error is above the limit (default: 1 %).

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "telemetry/energy_meter.h"
#include "telemetry/sampler.h"
#include "twin/compile.h"
#include "twin/device_spec.h"
#include "twin/job_catalog.h"
#include "twin/judge.h"
#include "twin/twin.h"
#include "twin/twin_device.h"

namespace gpoeo {
namespace {

using telemetry::EnergySource;

struct Options {
  double seconds = 45;
  int seeds = 2;
  double limit_pct = 1.0;
};

// The twin's device with a price on the energy counter: the call moves the clock.
class PricedDevice final : public gpu::Device {
 public:
  PricedDevice(std::unique_ptr<gpu::Device> device, VirtualClock& clock, Duration price)
      : device_(std::move(device)), clock_(clock), price_(price) {}
  const gpu::DeviceIdentity& identity() const override { return device_->identity(); }
  const gpu::Capabilities& capabilities() const override { return device_->capabilities(); }
  Result<std::vector<gpu::PowerSample>> power_samples_since(Instant since) override {
    return device_->power_samples_since(since);
  }
  Result<Watts> power_instant() override { return device_->power_instant(); }
  Result<Watts> power_average() override { return device_->power_average(); }
  Result<Joules> energy_counter() override {
    clock_.advance(price_ / 2);
    auto energy = device_->energy_counter();
    clock_.advance(price_ / 2);
    return energy;
  }
  Result<Hertz> sm_clock() override { return device_->sm_clock(); }
  Result<Hertz> memory_clock() override { return device_->memory_clock(); }
  Result<gpu::Utilization> utilization() override { return device_->utilization(); }
  Result<Celsius> temperature() override { return device_->temperature(); }
  Result<gpu::EventReasons> event_reasons() override { return device_->event_reasons(); }
  Result<gpu::Counters> counters() override { return device_->counters(); }
  Result<std::vector<gpu::ComputeProcess>> compute_processes() override {
    return device_->compute_processes();
  }
  Result<Watts> power_limit() override { return device_->power_limit(); }
  gpu::Controls* controls() override { return nullptr; }

 private:
  std::unique_ptr<gpu::Device> device_;
  VirtualClock& clock_;
  Duration price_;
};

struct Found {
  double error;
  std::string where;
};
// By window length in seconds.
using Errors = std::map<int, std::vector<Found>>;

struct RunResult {
  Errors errors;
  telemetry::SourceChoice choice;
  int unanswered = 0;  // windows whose closing readings never came
  double calls_per_second = 0;
  double counter_calls_per_second = 0;
};

[[noreturn]] void stop(std::string_view what) {
  fmt::print(stderr, "energy_windows: {}\n", what);
  std::exit(1);
}
template <typename T>
T value_or_stop(Result<T> result) {
  if (!result) stop(result.error().text);
  return std::move(*result);
}

RunResult run(const twin::DeviceModel& model, const std::string& job, bool costly,
              std::uint64_t seed, const Options& options) {
  const std::string key(model.key.data());
  VirtualClock clock;
  twin::Twin twin(clock);
  const unsigned card = twin.add_card(model, seed);
  const auto work = value_or_stop(twin::compile(value_or_stop(twin::find_job(key, job)), model));
  twin::JobOptions job_options;
  job_options.seed = seed;
  value_or_stop(twin.attach(card, *work, job_options));
  PricedDevice device(value_or_stop(twin::open_device(twin, card, gpu::Access::kReadOnly)), clock,
                      costly ? std::chrono::milliseconds(6) : Duration{});
  telemetry::Sampler sampler(device, clock);
  telemetry::EnergyMeter meter(sampler.history());

  struct Window {
    int length_s;
    Instant begin, end;
    double begin_j = 0, end_j = 0;
    std::optional<Joules> measured;
  };
  std::mt19937_64 random(seed * 7919 + (costly ? 1 : 0));
  std::vector<Window> windows;
  const Instant start = clock.now();
  // One window after the other, as a controller measures; the source is known after six seconds.
  for (double t = 6.5; t < options.seconds;) {
    const int length_s = std::array{3, 5, 10}[windows.size() % 3];
    t += std::uniform_real_distribution<double>(0.1, 0.9)(random);
    windows.push_back({length_s, start + to_duration(Seconds(t)),
                       start + to_duration(Seconds(t + length_s)), 0, 0, std::nullopt});
    t += length_s;
  }
  const Instant last = windows.back().end + std::chrono::seconds(3);
  std::size_t edge = 0;      // 2 * window + (1 for its end)
  std::size_t answered = 0;  // windows
  Instant next_poll = clock.now();
  while (clock.now() < last) {
    if (edge < 2 * windows.size()) {
      Window& w = windows[edge / 2];
      const bool is_end = edge % 2 == 1;
      if (clock.now() >= (is_end ? w.end : w.begin)) {
        // A costly call may have carried the clock past the edge: the window is where we are.
        (is_end ? w.end : w.begin) = clock.now();
        (is_end ? w.end_j : w.begin_j) = value_or_stop(twin::truth(twin, card)).energy.value();
        sampler.request_energy_mark();
        next_poll = clock.now();
        ++edge;
      }
    }
    if (clock.now() >= next_poll) {
      next_poll = sampler.poll(clock.now());
      if (meter.update()) sampler.set_counter_role(meter.role());
    }
    // Each window is asked for as soon as it can be answered, as a controller would.
    for (; answered < edge / 2; ++answered) {
      Window& w = windows[answered];
      const auto energy = meter.energy(w.begin, w.end);
      if (!energy && energy.error().kind == ErrorKind::kBusy) break;
      if (!energy) stop(fmt::format("{} on {}: {}", job, key, energy.error().text));
      w.measured = energy->energy;
    }
    Instant next = std::min(next_poll, last);
    if (edge < 2 * windows.size()) {
      const Window& w = windows[edge / 2];
      next = std::min(next, edge % 2 == 1 ? w.end : w.begin);
    }
    if (next > clock.now()) clock.advance(next - clock.now());
  }
  RunResult result;
  for (const Window& w : windows) {
    if (!w.measured) {
      ++result.unanswered;
      continue;
    }
    result.errors[w.length_s].push_back({w.measured->value() / (w.end_j - w.begin_j) - 1,
                                         fmt::format("{} on {}, seed {}, at {:.1f} s", job, key,
                                                     seed, to_seconds(w.begin - start).value())});
  }
  result.choice = meter.choice();
  result.calls_per_second = sampler.calls_per_second();
  result.counter_calls_per_second =
      static_cast<double>(sampler.stats(gpu::Reading::kEnergyCounter).calls) /
      to_seconds(clock.now() - start).value();
  return result;
}

void print_errors(int length_s, std::vector<Found>& found) {
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return std::abs(a.error) < std::abs(b.error); });
  const auto at = [&](double share) {
    const auto i = static_cast<std::size_t>(share * static_cast<double>(found.size() - 1));
    return 100 * std::abs(found[i].error);
  };
  double mean = 0;
  for (const Found& f : found) mean += 100 * f.error / static_cast<double>(found.size());
  fmt::print(
      "  {:>2} s  {:>5} windows  median {:.3f} %  p90 {:.3f} %  p99 {:.3f} %  worst {:.3f} %"
      "  mean {:+.3f} %  ({})\n",
      length_s, found.size(), at(0.5), at(0.9), at(0.99), at(1), mean, found.back().where);
}

Result<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view flag = argv[i];
    if (i + 1 >= argc) {
      return make_error(ErrorKind::kInvalid, fmt::format("{} needs a value", flag));
    }
    GPOEO_TRY(const double value, parse_double(argv[i + 1]));
    if (flag == "--seconds" && value >= 12) {
      options.seconds = value;
    } else if (flag == "--seeds" && value >= 1) {
      options.seeds = static_cast<int>(value);
    } else if (flag == "--limit" && value > 0) {
      options.limit_pct = value;
    } else {
      return make_error(
          ErrorKind::kInvalid,
          fmt::format("{} {}: use --seconds (12 or more), --seeds, --limit", flag, argv[i + 1]));
    }
  }
  return options;
}

}  // namespace
}  // namespace gpoeo

int main(int argc, char** argv) {
  using namespace gpoeo;
  const auto options = parse(argc, argv);
  if (!options) {
    fmt::print(stderr, "energy_windows: {}\n", options.error().text);
    return 2;
  }
  log::set_level(log::Level::kError);
  double worst_pct = 0;
  fmt::print("Energy of windows against the twin's truth. All of it is simulated.\n");
  for (const std::string habits : {"h200", "a100"}) {
    const auto sensors = value_or_stop(twin::find_device(habits));
    for (const bool costly : {false, true}) {
      Errors all;
      std::map<std::string, int> sources;
      double calls = 0, counter_calls = 0, agreement = 0;
      int runs = 0, unanswered = 0;
      for (const std::string& key : value_or_stop(twin::device_names())) {
        auto model = value_or_stop(twin::find_device(key));
        model.power_samples = sensors.power_samples;
        model.power_instant = sensors.power_instant;
        model.power_average = sensors.power_average;
        model.energy_tick_ns = sensors.energy_tick_ns;
        model.readings = sensors.readings;
        for (const auto& job : value_or_stop(twin::jobs_for(key))) {
          for (int seed = 1; seed <= options->seeds; ++seed) {
            auto result = run(model, job.name, costly, static_cast<std::uint64_t>(seed), *options);
            for (auto& [length, found] : result.errors) {
              auto& into = all[length];
              into.insert(into.end(), found.begin(), found.end());
            }
            ++sources[std::string(to_string(result.choice.source))];
            calls += result.calls_per_second;
            counter_calls += result.counter_calls_per_second;
            agreement = std::max(agreement, std::abs(result.choice.agreement.value_or(0)));
            unanswered += result.unanswered;
            ++runs;
          }
        }
      }
      std::string used;
      for (const auto& [source, n] : sources) {
        used += fmt::format("{}{} in {} runs", used.empty() ? "" : ", ", source, n);
      }
      fmt::print(
          "{} habits, energy counter {}: {}; samples and counter differ by up to {:.2f} %; "
          "{:.1f} calls/s, of them {:.2f} of the energy counter\n",
          habits, costly ? "6 ms a call" : "free", used, 100 * agreement, calls / runs,
          counter_calls / runs);
      if (unanswered > 0) fmt::print("  {} windows were never answered\n", unanswered);
      for (auto& [length, found] : all) {
        print_errors(length, found);
        worst_pct = std::max(worst_pct, 100 * std::abs(found.back().error));
      }
    }
  }
  fmt::print("Worst of all: {:.3f} % (limit {:g} %)\n", worst_pct, options->limit_pct);
  return worst_pct <= options->limit_pct ? 0 : 1;
}
