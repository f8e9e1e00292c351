// SPDX-License-Identifier: Apache-2.0
// `gpoeo monitor`: reads the GPUs, changes nothing, and at the end compares the energy that the
// power samples add up to with the energy counter.
#include <fmt/format.h>
#include <signal.h>
#include <CLI/CLI.hpp>

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>

#include "backend.h"
#include "base/log.h"
#include "telemetry/energy_meter.h"
#include "telemetry/sampler.h"
#include "telemetry/trace_file.h"
#include "verb.h"

namespace gpoeo::app {
namespace {

struct MonitorOptions {
  BackendOptions backend;
  std::optional<std::string> gpus;
  double interval_s = 1.0;
  double seconds = 0;  // 0: until Ctrl-C
  std::string trace_file;
  bool json = false;
};

// Set by the signal handler; a handler can reach nothing but a global.
StopFlag g_stop;
void handle_stop(int /*signal*/) { g_stop.request(); }

struct Watched {
  std::unique_ptr<gpu::Device> device;
  std::unique_ptr<telemetry::Sampler> sampler;
  std::unique_ptr<telemetry::EnergyMeter> meter;
};

const telemetry::StatusPoint* newest_with_clock(const telemetry::History& history) {
  for (std::size_t i = history.status.size(); i-- > 0;) {
    if (history.status[i].sm_clock) return &history.status[i];
  }
  return nullptr;
}

template <typename T, typename Show>
std::string or_dash(const std::optional<T>& value, Show show) {
  return value ? show(*value) : "-";
}

// Newest of a field that is not read in every poll.
template <typename Field>
auto newest(const telemetry::History& history, Field field) {
  for (std::size_t i = history.status.size(); i-- > 0;) {
    if (const auto& value = history.status[i].*field) return value;
  }
  return std::remove_cvref_t<decltype(std::declval<telemetry::StatusPoint>().*field)>{};
}

// Mean of the samples since `from`: one sample is a moment, a line stands for an interval.
std::optional<double> mean_power_w(const telemetry::History& history, Instant from) {
  const std::size_t first = history.power.first_after(from);
  if (first >= history.power.size()) return std::nullopt;
  double sum = 0;
  for (std::size_t i = first; i < history.power.size(); ++i) sum += history.power[i].power.value();
  return sum / static_cast<double>(history.power.size() - first);
}

nlohmann::json line_json(const Watched& w, Instant now, Instant since) {
  const auto& history = w.sampler->history();
  const auto number = [](const auto& value, auto convert) {
    return value ? nlohmann::json(convert(*value)) : nlohmann::json(nullptr);
  };
  const auto* clocks = newest_with_clock(history);
  const auto utilization = newest(history, &telemetry::StatusPoint::utilization);
  const auto power = mean_power_w(history, since);
  return {{"t_us", to_unix_ns(now) / 1000},
          {"gpu", w.device->identity().index},
          {"uuid", w.device->identity().uuid},
          {"simulated", w.device->identity().simulated},
          {"power_w", power ? nlohmann::json(*power) : nlohmann::json(nullptr)},
          {"sm_clock_mhz",
           clocks ? nlohmann::json(to_mhz(*clocks->sm_clock)) : nlohmann::json(nullptr)},
          {"mem_clock_mhz", number(newest(history, &telemetry::StatusPoint::memory_clock), to_mhz)},
          {"gpu_util", number(utilization, [](const auto& u) { return u.gpu; })},
          {"mem_util", number(utilization, [](const auto& u) { return u.memory; })},
          {"temperature_c", number(newest(history, &telemetry::StatusPoint::temperature),
                                   [](Celsius t) { return t.value(); })},
          {"event_reasons", number(newest(history, &telemetry::StatusPoint::reasons),
                                   [](gpu::EventReasons r) { return r.bits; })}};
}

std::string line_text(const Watched& w, Instant since) {
  const auto& history = w.sampler->history();
  const auto mhz = [](Hertz f) { return fmt::format("{:.0f}", to_mhz(f)); };
  return fmt::format(
      "{:>4} {:>8} {:>7} {:>8} {:>6} {:>6} {:>6}  {}", w.device->identity().index,
      or_dash(mean_power_w(history, since), [](double p) { return fmt::format("{:.1f}", p); }),
      or_dash(newest(history, &telemetry::StatusPoint::sm_clock), mhz),
      or_dash(newest(history, &telemetry::StatusPoint::memory_clock), mhz),
      or_dash(newest(history, &telemetry::StatusPoint::utilization),
              [](const auto& u) { return fmt::format("{:.0f}", 100 * u.gpu); }),
      or_dash(newest(history, &telemetry::StatusPoint::utilization),
              [](const auto& u) { return fmt::format("{:.0f}", 100 * u.memory); }),
      or_dash(newest(history, &telemetry::StatusPoint::temperature),
              [](Celsius t) { return fmt::format("{:.0f}", t.value()); }),
      or_dash(newest(history, &telemetry::StatusPoint::reasons),
              [](gpu::EventReasons r) { return to_string(r); }));
}

nlohmann::json summary_json(const Watched& w, Instant from, Instant to) {
  const auto energy = [&](telemetry::EnergySource source) -> nlohmann::json {
    const auto window = w.meter->energy_from(source, from, to);
    if (!window) return {{"error", window.error().text}};
    return {{"energy_j", window->energy.value()},
            {"standard_error_j", window->uncertainty.value()}};
  };
  const auto& choice = w.meter->choice();
  return {{"gpu", w.device->identity().index},
          {"seconds", to_seconds(to - from).value()},
          {"power_samples", energy(telemetry::EnergySource::kPowerSamples)},
          {"energy_counter", energy(telemetry::EnergySource::kEnergyCounter)},
          {"source", telemetry::to_string(choice.source)},
          {"samples_over_counter",
           choice.agreement ? nlohmann::json(*choice.agreement) : nlohmann::json(nullptr)},
          {"reason", choice.reason},
          {"calls_per_second", w.sampler->calls_per_second()},
          {"call_time_share", w.sampler->call_time_share()}};
}

void print_summary(const Watched& w, Instant from, Instant to) {
  const auto samples = w.meter->energy_from(telemetry::EnergySource::kPowerSamples, from, to);
  const auto counter = w.meter->energy_from(telemetry::EnergySource::kEnergyCounter, from, to);
  fmt::print("GPU {}{}: {:.1f} s\n", w.device->identity().index,
             w.device->identity().simulated ? " (simulated)" : "", to_seconds(to - from).value());
  const auto show = [](std::string_view name, const Result<telemetry::WindowEnergy>& e) {
    if (e) {
      fmt::print("  {:<15} {:.1f} J ({:.1f} W)\n", name, e->energy.value(),
                 e->mean_power().value());
    } else {
      fmt::print("  {:<15} {}\n", name, e.error().text);
    }
  };
  show("power samples", samples);
  show("energy counter", counter);
  if (samples && counter) {
    fmt::print("  {:<15} {:+.2f} % (samples over counter)\n", "difference",
               100 * (samples->energy / counter->energy - 1));
  }
  fmt::print("  {:<15} {}: {}\n", "used", telemetry::to_string(w.meter->choice().source),
             w.meter->choice().reason);
  fmt::print("  {:<15} {:.1f} driver calls/s, {:.3f} % of the time\n", "cost",
             w.sampler->calls_per_second(), 100 * w.sampler->call_time_share());
}

int monitor(const MonitorOptions& options) {
  if (options.interval_s < 0.05 || options.seconds < 0) {
    return fail({ErrorKind::kInvalid, "--interval: at least 0.05 s; --seconds: not negative"},
                kExitUsage);
  }
  auto backend = open_backend(options.backend);
  if (!backend) return fail(backend.error(), kExitOwnFailure);
  auto gpus = open_gpus(*backend, options.gpus, gpu::Access::kReadOnly);
  if (!gpus) return fail(gpus.error(), kExitOwnFailure);
  std::optional<telemetry::TraceWriter> trace;
  if (!options.trace_file.empty()) {
    auto writer = telemetry::TraceWriter::create(options.trace_file);
    if (!writer) return fail(writer.error(), kExitOwnFailure);
    trace.emplace(std::move(*writer));
  }
  ::signal(SIGINT, handle_stop);
  ::signal(SIGTERM, handle_stop);

  Clock& clock = *backend->clock;
  std::vector<Watched> watched;
  for (auto& device : gpus->devices) {
    Watched w{.device = std::move(device), .sampler = {}, .meter = {}};
    w.sampler = std::make_unique<telemetry::Sampler>(*w.device, clock);
    w.meter = std::make_unique<telemetry::EnergyMeter>(w.sampler->history());
    // Both sources are to be shown at the end, so the counter is followed even if it is only a
    // check.
    w.sampler->set_counter_role(telemetry::CounterRole::kCarriesFigures);
    watched.push_back(std::move(w));
  }
  if (!options.json) {
    if (backend->simulated()) fmt::print("SIMULATED GPU: every figure comes from the twin\n");
    fmt::print("{:>4} {:>8} {:>7} {:>8} {:>6} {:>6} {:>6}  {}\n", "gpu", "power W", "SM MHz",
               "mem MHz", "util %", "mem %", "temp C", "clock reasons");
  }
  const Instant started = clock.now();
  const Duration interval = to_duration(Seconds(options.interval_s));
  Instant line_due = started + interval;
  std::optional<Instant> from;
  const auto poll = [&] {
    const Instant now = clock.now();
    Instant next = now + std::chrono::milliseconds(200);
    for (auto& w : watched) {
      next = std::min(next, w.sampler->poll(now));
      w.meter->update();
      const auto& power = w.sampler->history().power;
      if (!from && !power.empty()) from = power.back().time;
    }
    if (trace) trace->append_new(watched.front().sampler->history());
    return next;
  };
  for (auto& w : watched) w.sampler->request_energy_mark();
  while (!g_stop.requested()) {
    const Instant next = poll();
    const Instant now = clock.now();
    if (options.seconds > 0 && now - started >= to_duration(Seconds(options.seconds))) break;
    if (now >= line_due) {
      for (const auto& w : watched) {
        if (options.json) {
          fmt::print("{}\n", line_json(w, now, line_due - interval).dump());
        } else {
          fmt::print("{}\n", line_text(w, line_due - interval));
        }
      }
      std::fflush(stdout);
      line_due += interval * std::max<std::int64_t>(1, (now - line_due) / interval + 1);
    }
    clock.sleep_until(std::min(next, line_due), g_stop);
  }
  // The window closes now; polls go on until both sources have the readings that close it.
  const Instant to = clock.now();
  const auto closed = [&](const Watched& w) {
    const auto is_closed = [&](telemetry::EnergySource source) {
      const auto energy = w.meter->energy_from(source, from.value_or(started), to);
      return energy || energy.error().kind != ErrorKind::kBusy;
    };
    return is_closed(telemetry::EnergySource::kPowerSamples) &&
           is_closed(telemetry::EnergySource::kEnergyCounter);
  };
  const StopFlag never;
  const Instant give_up = to + std::chrono::seconds(4);
  for (auto& w : watched) w.sampler->request_energy_mark();
  while (clock.now() < give_up && !std::ranges::all_of(watched, closed)) {
    for (auto& w : watched) w.sampler->request_readings();
    clock.sleep_until(std::min(poll(), give_up), never);
  }
  for (const auto& w : watched) {
    if (options.json) {
      fmt::print("{}\n", summary_json(w, from.value_or(started), to).dump());
    } else {
      print_summary(w, from.value_or(started), to);
    }
  }
  return kExitOk;
}

}  // namespace

void add_monitor(CLI::App& root, Invocation& invocation) {
  auto* verb = root.add_subcommand("monitor", "Show power, clocks and load; changes nothing");
  auto options = std::make_shared<MonitorOptions>();
  verb->add_option("--gpus", options->gpus, "all, or a list of indices, UUIDs or PCI ids");
  verb->add_option("--twin", options->backend.twin,
                   "Simulated GPU (a device, or a twin that is up)");
  verb->add_option("--interval", options->interval_s, "Seconds between lines");
  verb->add_option("--seconds", options->seconds, "Stop after this long (0: until Ctrl-C)");
  verb->add_option("--trace", options->trace_file, "Write the first GPU's trace as CSV");
  verb->add_flag("--json", options->json, "One JSON object a line");
  verb->footer("Example: gpoeo monitor --seconds 20");
  verb->callback(
      [&invocation, options] { invocation.action = [options] { return monitor(*options); }; });
}

}  // namespace gpoeo::app
