// SPDX-License-Identifier: Apache-2.0
// Readings. What is found out at opening is in nvml_probe.cc.
#include "gpu/nvml/nvml_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace gpoeo::nvml {
namespace {

// Beyond these a value is a sentinel (NVML's 0xFFFFFFFF) or broken, on any GPU that exists.
constexpr double kMaxWatts = 10'000;
constexpr double kMaxMhz = 10'000;
constexpr double kMaxCelsius = 150;
// How long the counter may lag behind the clock when a step is judged.
constexpr double kEnergySlackSeconds = 2;

double number(abi::ValueType type, const abi::Value& value) {
  switch (type) {
    case abi::kValueDouble:
      return value.as_double;
    case abi::kValueUnsigned:
      return value.as_unsigned;
    case abi::kValueUnsignedLong:
      return static_cast<double>(value.as_unsigned_long);
    case abi::kValueUnsignedLongLong:
      return static_cast<double>(value.as_unsigned_long_long);
    case abi::kValueSignedLongLong:
      return static_cast<double>(value.as_long_long);
    case abi::kValueSigned:
      return value.as_int;
  }
  return std::nan("");  // a type of a later NVML: fails each plausibility check below
}

bool plausible_watts(double watts) { return watts >= 0 && watts <= kMaxWatts; }

}  // namespace

Status NvmlDevice::check(abi::Return code, std::string_view call) const {
  return session_->library().check(code, label_, call);
}

std::unexpected<Error> NvmlDevice::missing(std::string_view call) const {
  return session_->library().missing(label_, call);
}

std::unexpected<Error> NvmlDevice::absurd(std::string_view call, double value,
                                          std::string_view unit) const {
  return make_error(ErrorKind::kIo, fmt::format("{}: {} answered {:.0f} {}, which no GPU has",
                                                label_, call, value, unit));
}

Result<Watts> NvmlDevice::watts_from(double milliwatts, std::string_view call) const {
  if (!plausible_watts(milliwatts * 1e-3)) return absurd(call, milliwatts, "mW");
  return Watts(milliwatts * 1e-3);
}

Result<std::vector<gpu::PowerSample>> NvmlDevice::power_samples_since(Instant since) {
  constexpr std::string_view kCall = "nvmlDeviceGetSamples";
  constexpr std::size_t kMostSamples = 1 << 16;
  const Getters& get = session_->get();
  if (get.samples == nullptr) return missing(kCall);
  session_->refresh_offset();

  const unsigned long long since_us = session_->to_stamp_us(since);
  abi::ValueType type = abi::kValueUnsigned;
  unsigned count = 0;
  for (;;) {
    count = static_cast<unsigned>(sample_buffer_.size());
    const abi::Return code = get.samples(handle_, abi::kSamplesTotalPower, since_us, &type, &count,
                                         sample_buffer_.data());
    if (code == abi::kNotFound) return std::vector<gpu::PowerSample>();  // nothing newer
    const bool full = count >= sample_buffer_.size();
    if (code == abi::kInsufficientSize || (code == abi::kSuccess && full)) {
      if (sample_buffer_.size() >= kMostSamples) {
        return make_error(ErrorKind::kIo, fmt::format("{}: {} has more than {} samples", label_,
                                                      kCall, kMostSamples));
      }
      sample_buffer_.resize(sample_buffer_.size() * 2);
      continue;
    }
    GPOEO_TRY_STATUS(check(code, kCall));
    break;
  }

  std::vector<gpu::PowerSample> samples;
  samples.reserve(count);
  double refused = 0;
  for (unsigned i = 0; i < count; ++i) {
    const abi::Sample& sample = sample_buffer_[i];
    if (sample.time_us <= since_us) continue;
    const double watts = number(type, sample.value) * 1e-3;
    if (!plausible_watts(watts)) {
      refused = watts;
      continue;
    }
    samples.push_back({session_->to_instant(sample.time_us), Watts(watts)});
  }
  // One broken sample is a gap in the record; nothing but broken ones is a broken sensor.
  if (samples.empty() && refused != 0) return absurd(kCall, refused, "W");
  std::ranges::sort(samples, {}, &gpu::PowerSample::time);
  return samples;
}

Result<Watts> NvmlDevice::field_power(abi::Field field) const {
  constexpr std::string_view kCall = "nvmlDeviceGetFieldValues";
  const Getters& get = session_->get();
  if (get.field_values == nullptr) return missing(kCall);
  abi::FieldValue value{};
  value.field = field;
  value.status = abi::kNotSupported;
  GPOEO_TRY_STATUS(check(get.field_values(handle_, 1, &value), kCall));
  // Drivers before the field was defined answer "invalid argument" for it.
  if (value.status == abi::kInvalidArgument) value.status = abi::kNotSupported;
  GPOEO_TRY_STATUS(
      check(value.status, fmt::format("{} (field {})", kCall, static_cast<int>(field))));
  return watts_from(number(value.type, value.value), kCall);
}

Result<Watts> NvmlDevice::power_usage() const {
  constexpr std::string_view kCall = "nvmlDeviceGetPowerUsage";
  if (session_->get().power_usage == nullptr) return missing(kCall);
  unsigned milliwatts = 0;
  GPOEO_TRY_STATUS(check(session_->get().power_usage(handle_, &milliwatts), kCall));
  return watts_from(milliwatts, kCall);
}

bool NvmlDevice::usage_is_average() const {
  return compute_major_ > 8 || (compute_major_ == 8 && compute_minor_ > 0);
}

Result<Watts> NvmlDevice::power_instant() {
  Result<Watts> watts = field_power(abi::kFieldPowerInstant);
  if (watts || watts.error().kind != ErrorKind::kNotSupported || usage_is_average()) return watts;
  return power_usage();
}

Result<Watts> NvmlDevice::power_average() {
  Result<Watts> watts = field_power(abi::kFieldPowerAverage);
  if (watts || watts.error().kind != ErrorKind::kNotSupported || !usage_is_average()) return watts;
  return power_usage();
}

Result<Joules> NvmlDevice::energy_counter() {
  constexpr std::string_view kCall = "nvmlDeviceGetTotalEnergyConsumption";
  if (session_->get().energy == nullptr) return missing(kCall);
  unsigned long long millijoules = 0;
  GPOEO_TRY_STATUS(check(session_->get().energy(handle_, &millijoules), kCall));
  if (millijoules == abi::kNotAvailable64) {
    return absurd(kCall, static_cast<double>(millijoules), "mJ");
  }
  const EnergyPoint now{session_->clock().now(), millijoules};
  const std::optional<EnergyPoint> before = std::exchange(last_energy_, now);
  if (before) {
    if (now.millijoules < before->millijoules) {
      return make_error(
          ErrorKind::kIo,
          fmt::format("{}: the energy counter went back from {} to {} mJ; windows across this are "
                      "lost",
                      label_, before->millijoules, now.millijoules));
    }
    const double joules = static_cast<double>(now.millijoules - before->millijoules) * 1e-3;
    const double seconds = to_seconds(now.time - before->time).value() + kEnergySlackSeconds;
    const double most =
        capabilities_.power_limits ? 3 * capabilities_.power_limits->max.value() : kMaxWatts;
    if (joules > most * seconds) {
      return make_error(
          ErrorKind::kIo,
          fmt::format("{}: the energy counter jumped by {:.0f} J in {:.1f} s, more than the card "
                      "can draw; windows across this are lost",
                      label_, joules, to_seconds(now.time - before->time).value()));
    }
  }
  return Joules(static_cast<double>(millijoules) * 1e-3);
}

Result<Hertz> NvmlDevice::clock(abi::ClockType type) const {
  constexpr std::string_view kCall = "nvmlDeviceGetClockInfo";
  if (session_->get().clock_info == nullptr) return missing(kCall);
  unsigned mhz = 0;
  GPOEO_TRY_STATUS(check(session_->get().clock_info(handle_, type, &mhz), kCall));
  if (mhz > kMaxMhz) return absurd(kCall, mhz, "MHz");
  return megahertz(mhz);
}

Result<Hertz> NvmlDevice::sm_clock() { return clock(abi::kClockSm); }
Result<Hertz> NvmlDevice::memory_clock() { return clock(abi::kClockMemory); }

Result<gpu::Utilization> NvmlDevice::utilization() {
  constexpr std::string_view kCall = "nvmlDeviceGetUtilizationRates";
  if (session_->get().utilization == nullptr) return missing(kCall);
  abi::Utilization percent{};
  GPOEO_TRY_STATUS(check(session_->get().utilization(handle_, &percent), kCall));
  if (percent.gpu > 100) return absurd(kCall, percent.gpu, "%");
  if (percent.memory > 100) return absurd(kCall, percent.memory, "%");
  return gpu::Utilization{percent.gpu * 0.01, percent.memory * 0.01};
}

Result<Celsius> NvmlDevice::temperature() {
  constexpr std::string_view kCall = "nvmlDeviceGetTemperature";
  if (session_->get().temperature == nullptr) return missing(kCall);
  unsigned celsius = 0;
  GPOEO_TRY_STATUS(
      check(session_->get().temperature(handle_, abi::kTemperatureGpu, &celsius), kCall));
  if (celsius > kMaxCelsius) return absurd(kCall, celsius, "degrees");
  return Celsius(celsius);
}

Result<gpu::EventReasons> NvmlDevice::event_reasons() {
  constexpr std::string_view kCall = "nvmlDeviceGetCurrentClocksEventReasons";
  if (session_->get().event_reasons == nullptr) return missing(kCall);
  unsigned long long bits = 0;
  GPOEO_TRY_STATUS(check(session_->get().event_reasons(handle_, &bits), kCall));
  return gpu::EventReasons{bits};
}

Result<gpu::Counters> NvmlDevice::counters() {
  if (!gpm_) {
    return make_error(ErrorKind::kNotSupported,
                      fmt::format("{}: no activity counters (GPM needs Hopper or newer and driver "
                                  "520 or newer)",
                                  label_));
  }
  return gpm_->read();
}

namespace {

// The count-then-fetch protocol of the process lists: grows until the list fits.
template <typename Info, typename Function>
Result<std::vector<Info>> fetch_list(Function function, abi::DeviceHandle handle,
                                     const auto& check_call) {
  std::vector<Info> list(16);
  for (int attempt = 0; attempt < 8; ++attempt) {
    auto count = static_cast<unsigned>(list.size());
    const abi::Return code = function(handle, &count, list.data());
    if (code == abi::kInsufficientSize) {
      list.resize(std::max<std::size_t>(count, list.size()) * 2);
      continue;
    }
    GPOEO_TRY_STATUS(check_call(code));
    list.resize(std::min<std::size_t>(count, list.size()));
    return list;
  }
  return std::unexpected(check_call(abi::kInsufficientSize).error());
}

template <typename Info>
std::vector<gpu::ComputeProcess> to_processes(const std::vector<Info>& list) {
  std::vector<gpu::ComputeProcess> processes;
  for (const Info& info : list) {
    gpu::ComputeProcess process{.pid = info.pid, .memory_bytes = std::nullopt};
    if (info.used_memory != abi::kNotAvailable64) process.memory_bytes = info.used_memory;
    processes.push_back(process);
  }
  return processes;
}

}  // namespace

Result<std::vector<gpu::ComputeProcess>> NvmlDevice::compute_processes() {
  constexpr std::string_view kCall = "nvmlDeviceGetComputeRunningProcesses";
  const Getters& get = session_->get();
  const auto check_call = [this, kCall](abi::Return code) { return check(code, kCall); };
  if (get.processes != nullptr) {
    GPOEO_TRY(auto list, fetch_list<abi::ProcessInfo>(get.processes, handle_, check_call));
    return to_processes(list);
  }
  if (get.processes_v1 == nullptr) return missing(kCall);
  GPOEO_TRY(auto list, fetch_list<abi::ProcessInfoV1>(get.processes_v1, handle_, check_call));
  return to_processes(list);
}

Result<Watts> NvmlDevice::power_limit() {
  constexpr std::string_view kCall = "nvmlDeviceGetEnforcedPowerLimit";
  if (session_->get().enforced_limit == nullptr) return missing(kCall);
  unsigned milliwatts = 0;
  GPOEO_TRY_STATUS(check(session_->get().enforced_limit(handle_, &milliwatts), kCall));
  return watts_from(milliwatts, kCall);
}

}  // namespace gpoeo::nvml
