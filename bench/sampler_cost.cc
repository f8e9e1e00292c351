// SPDX-License-Identifier: Apache-2.0
// What the sampler and the energy meter cost on wall time: calls and CPU time a second, and what
// each kind of call takes. Reads only.
//
//   sampler_cost [--seconds N] [--nvml LIBRARY]
//
// Without --nvml on a simulated A100 in this process; `--nvml libnvidia-ml.so.1` takes the first
// card of that library (a real one, or a twin's). Exit status 1 above 0.5 % of a core.

#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/text.h"
#include "gpu/nvml/nvml_driver.h"
#include "telemetry/energy_meter.h"
#include "telemetry/sampler.h"
#include "twin/compile.h"
#include "twin/device_spec.h"
#include "twin/job_catalog.h"
#include "twin/twin.h"
#include "twin/twin_device.h"

namespace gpoeo {
namespace {

[[noreturn]] void stop(std::string_view what) {
  fmt::print(stderr, "sampler_cost: {}\n", what);
  std::exit(2);
}
template <typename T>
T value_or_stop(Result<T> result) {
  if (!result) stop(result.error().text);
  return std::move(*result);
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int measure(gpu::Device& device, Clock& clock, double duration_s) {
  telemetry::Sampler sampler(device, clock);
  telemetry::EnergyMeter meter(sampler.history());
  const StopFlag never;
  const double cpu_before_s = cpu_seconds();
  const Instant start = clock.now();
  const Instant end = start + to_duration(Seconds(duration_s));
  std::uint64_t polls = 0;
  while (clock.now() < end) {
    const Instant next = sampler.poll(clock.now());
    ++polls;
    if (meter.update()) sampler.set_counter_role(meter.role());
    clock.sleep_until(std::min(next, end), never);
  }
  const double elapsed_s = to_seconds(clock.now() - start).value();
  const double share = (cpu_seconds() - cpu_before_s) / elapsed_s;

  const telemetry::SourceChoice& choice = meter.choice();
  fmt::print("{}{}: {:.0f} s, {} power samples, {} polls\n", device.identity().name,
             device.identity().simulated ? " (simulated)" : "", elapsed_s,
             sampler.history().power.size(), polls);
  fmt::print("energy from: {} ({})\n", to_string(choice.source), choice.reason);
  if (choice.agreement) {
    fmt::print("samples over counter: {:+.2f} % +- {:.2f} % over {:.1f} s\n",
               100 * *choice.agreement, 100 * choice.agreement_error, choice.compared_over.value());
  }
  fmt::print("gaps {}, refused samples {}, calls {:.1f}/s, inside calls {:.3f} % of the time\n",
             sampler.gaps(), sampler.refused().total(), sampler.calls_per_second(),
             100 * sampler.call_time_share());
  for (int r = 0; r < static_cast<int>(gpu::Reading::kCount); ++r) {
    const auto reading = static_cast<gpu::Reading>(r);
    const telemetry::ReadingStats& stats = sampler.stats(reading);
    if (stats.calls == 0) continue;
    fmt::print("  {:<20} {:>6.2f} calls/s  {:>8.1f} us a call  {} failed\n", to_string(reading),
               static_cast<double>(stats.calls) / elapsed_s,
               to_seconds(stats.spent).value() * 1e6 / static_cast<double>(stats.calls),
               stats.failures);
  }
  fmt::print("CPU: {:.3f} % of a core (limit 0.5 %)\n", 100 * share);
  return share <= 0.005 ? 0 : 1;
}

int on_twin(double duration_s) {
  RealClock clock;
  twin::Twin twin(clock);
  const auto model = value_or_stop(twin::find_device("a100"));
  const unsigned card = twin.add_card(model);
  const auto work =
      value_or_stop(twin::compile(value_or_stop(twin::find_job("a100", "LSTM")), model));
  value_or_stop(twin.attach(card, *work));
  const auto device = value_or_stop(twin::open_device(twin, card, gpu::Access::kReadOnly));
  return measure(*device, clock, duration_s);
}

int on_nvml(const std::string& library, double duration_s) {
  RealClock clock;
  nvml::NvmlOptions options;
  options.library = library;
  const auto driver = value_or_stop(nvml::open_nvml(options, clock));
  const auto device = value_or_stop(driver->open(0, gpu::Access::kReadOnly));
  return measure(*device, clock, duration_s);
}

}  // namespace
}  // namespace gpoeo

int main(int argc, char** argv) {
  using namespace gpoeo;
  double duration_s = 60;
  std::string library;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view flag = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (flag == "--nvml" && *value != '\0') {
      library = value;
    } else if (const auto seconds = parse_double(value);
               flag == "--seconds" && seconds && *seconds >= 1) {
      duration_s = *seconds;
    } else {
      stop(fmt::format("{} {}: use --seconds N (1 or more) and --nvml LIBRARY", flag, value));
    }
  }
  return library.empty() ? on_twin(duration_s) : on_nvml(library, duration_s);
}
