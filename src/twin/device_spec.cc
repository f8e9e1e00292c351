// SPDX-License-Identifier: Apache-2.0
#include "twin/device_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <system_error>

#include "twin/data_files.h"
#include "twin/toml_file.h"

namespace gpoeo::twin {
namespace {

namespace fs = std::filesystem;

constexpr double kMaxMhz = 20000, kMaxWatts = 5000, kMaxMs = 600000;

template <std::size_t N>
void set_text(std::array<char, N>& to, TomlFile& file, std::string_view key) {
  const std::string text = file.text(key);
  if (text.size() >= N)
    file.fault(key, fmt::format("has {} characters; at most {} fit", text.size(), N - 1));
  to.fill('\0');
  std::memcpy(to.data(), text.data(), std::min(text.size(), N - 1));
}

std::int64_t milliseconds(TomlFile& file, std::string_view key, double least) {
  return std::llround(file.number(key, least, kMaxMs) * 1e6);
}

int whole(TomlFile& file, std::string_view key, double least, double most) {
  const double value = file.number(key, least, most);
  if (value != std::floor(value)) file.fault(key, "must be a whole number");
  return static_cast<int>(value);
}

void read_identity(TomlFile& file, DeviceModel& d) {
  set_text(d.name, file, "device.name");
  set_text(d.key, file, "device.key");
  set_text(d.driver_version, file, "device.driver_version");
  d.memory_bytes = static_cast<std::uint64_t>(file.number("device.memory_mib", 1, 1 << 24)) << 20;
  d.cuda_major = whole(file, "device.cuda_major", 1, 99);
  d.cuda_minor = whole(file, "device.cuda_minor", 0, 9);
  d.sm_count = whole(file, "device.sm_count", 1, 1024);
  d.cores = whole(file, "device.cores", 1, 1 << 20);
  d.memory_bus_bits = whole(file, "device.memory_bus_bits", 32, 1 << 16);
  d.architecture = whole(file, "device.architecture", 2, 99);
  d.brand = whole(file, "device.brand", 0, 99);
  d.pci_device_id = static_cast<std::uint32_t>(file.number("device.pci_device_id", 0, 0xFFFFFFFF));
}

// The SM clocks: a list, or from/to/step (a step of 7.5 gives 135, 142, 150, ... as drivers show).
std::vector<int> read_sm_clocks(TomlFile& file) {
  std::vector<int> clocks;
  if (file.has("clocks.sm_mhz")) {
    for (const double mhz : file.numbers("clocks.sm_mhz", 1, kMaxMhz))
      clocks.push_back(static_cast<int>(mhz));
  } else {
    const double from = file.number("clocks.sm_from_mhz", 1, kMaxMhz);
    const double to = file.number("clocks.sm_to_mhz", from, kMaxMhz);
    const double step = file.number("clocks.sm_step_mhz", 0.5, kMaxMhz);
    for (int i = 0; i <= kMaxSmClocks && from + i * step <= to; ++i)
      clocks.push_back(static_cast<int>(from + i * step));
  }
  std::sort(clocks.begin(), clocks.end());
  if (std::adjacent_find(clocks.begin(), clocks.end()) != clocks.end())
    file.fault("clocks.sm_mhz", "has the same clock twice; remove one");
  if (clocks.size() > kMaxSmClocks)
    file.fault("clocks", fmt::format("has {} SM clocks; at most {} fit: take a larger step",
                                     clocks.size(), kMaxSmClocks));
  return clocks;
}

int index_of(TomlFile& file, std::string_view key, const std::vector<int>& clocks) {
  const int mhz = static_cast<int>(file.number(key, 1, kMaxMhz));
  const auto found = std::find(clocks.begin(), clocks.end(), mhz);
  if (found == clocks.end()) {
    file.fault(key, fmt::format("is {} MHz, which is not one of the device's clocks", mhz));
    return 0;
  }
  return static_cast<int>(found - clocks.begin());
}

void read_clocks(TomlFile& file, DeviceModel& d) {
  const std::vector<int> sm = read_sm_clocks(file);
  std::vector<int> memory;
  for (const double mhz : file.numbers("clocks.memory_mhz", 1, kMaxMhz))
    memory.push_back(static_cast<int>(mhz));
  if (!std::is_sorted(memory.rbegin(), memory.rend()))
    file.fault("clocks.memory_mhz", "must go down, the highest clock first");
  if (memory.size() > kMaxMemoryClocks || sm.size() * memory.size() > kMaxClockPairs)
    file.fault(
        "clocks.memory_mhz",
        fmt::format("gives {} memory clocks and {} pairs with SM clocks; at most {} and {} "
                    "fit: leave some out",
                    memory.size(), sm.size() * memory.size(), kMaxMemoryClocks, kMaxClockPairs));
  std::vector<double> highest(memory.size(), kMaxMhz);
  if (file.has("clocks.memory_sm_max_mhz"))
    highest = file.numbers("clocks.memory_sm_max_mhz", 1, kMaxMhz);
  if (highest.size() != memory.size())
    file.fault("clocks.memory_sm_max_mhz", "must have one number for each memory clock");
  d.default_sm = index_of(file, "clocks.default_sm_mhz", sm);
  d.idle_sm = index_of(file, "clocks.idle_sm_mhz", sm);
  d.idle_memory = index_of(file, "clocks.idle_memory_mhz", memory);
  d.idle_delay_ns = std::llround(file.number("clocks.idle_delay_s", 0, 3600) * 1e9);
  if (!file.ok()) return;
  d.sm_clock_count = static_cast<int>(sm.size());
  d.memory_clock_count = static_cast<int>(memory.size());
  std::copy(sm.begin(), sm.end(), d.sm_mhz.begin());
  std::copy(memory.begin(), memory.end(), d.memory_mhz.begin());
  for (std::size_t m = 0; m < memory.size(); ++m) {
    d.sm_first[m] = 0;
    d.sm_number[m] = static_cast<int>(
        std::count_if(sm.begin(), sm.end(), [&](int mhz) { return mhz <= highest[m]; }));
    if (d.sm_number[m] == 0)
      file.fault("clocks.memory_sm_max_mhz", "leaves a memory clock without any SM clock");
  }
}

void read_power(TomlFile& file, DeviceModel& d) {
  d.idle_w = file.number("power.idle_w", 0.1, kMaxWatts);
  const auto savings = file.numbers("power.memory_idle_saving_w", 0, kMaxWatts);
  if (savings.size() != static_cast<std::size_t>(d.memory_clock_count))
    file.fault("power.memory_idle_saving_w", "must have one number for each memory clock");
  else
    std::copy(savings.begin(), savings.end(), d.memory_idle_saving_w.begin());
  for (const double saving : savings)
    if (saving >= d.idle_w) file.fault("power.memory_idle_saving_w", "must stay under idle_w");
  d.active_w = file.number("power.active_w", 0, kMaxWatts);
  d.sm_dynamic_w = file.number("power.sm_dynamic_w", 0, kMaxWatts);
  d.memory_dynamic_w = file.number("power.memory_dynamic_w", 0, kMaxWatts);
  d.bandwidth_bytes_per_s = file.number("power.bandwidth_gb_per_s", 0.1, 100000) * 1e9;
  d.leakage_w_per_k = file.number("power.leakage_w_per_k", 0, 100);
  d.voltage_floor_v = file.number("voltage.floor_v", 0.1, 5);
  d.voltage_max_v = file.number("voltage.max_v", d.voltage_floor_v, 5);
  d.voltage_floor_mhz = file.number("voltage.floor_mhz", 0, kMaxMhz);
  d.limit_min_w = file.number("cap.min_w", 1, kMaxWatts);
  d.limit_max_w = file.number("cap.max_w", d.limit_min_w, kMaxWatts);
  d.limit_default_w = file.number("cap.default_w", d.limit_min_w, d.limit_max_w);
  d.governor_period_ns = milliseconds(file, "cap.governor_period_ms", 1);
  d.governor_filter_s = file.number("cap.governor_filter_ms", 1, kMaxMs) * 1e-3;
  d.governor_margin_w = file.number("cap.governor_margin_w", 0, kMaxWatts);
  d.ambient_c = file.number("thermal.ambient_c", -50, 100);
  d.thermal_k_per_w = file.number("thermal.k_per_w", 0, 10);
  d.thermal_tau_s = file.number("thermal.tau_s", 0.1, 3600);
  d.slowdown_c = file.number("thermal.slowdown_c", 0, 200);
  d.shutdown_c = file.number("thermal.shutdown_c", 0, 200);
  if (d.thermal_k_per_w * d.leakage_w_per_k >= 0.9)
    file.fault("power.leakage_w_per_k",
               "times thermal.k_per_w is 0.9 or more: heat would feed itself; lower one of them");
  d.clock_latency_ns = milliseconds(file, "setting.latency_ms", 0);
  d.clock_settle_ns = milliseconds(file, "setting.settle_ms", 0);
}

SensorTiming read_timing(TomlFile& file, const std::string& section, bool windowed) {
  SensorTiming timing{};
  timing.period_ns = milliseconds(file, section + ".period_ms", 1);
  timing.window_ns = timing.period_ns;
  timing.capacity = kMaxWindowPeriods;
  if (!windowed) return timing;
  const std::string window = section + ".window_ms";
  timing.window_ns = milliseconds(file, window, 1);
  const auto periods = timing.window_ns / std::max<std::int64_t>(1, timing.period_ns);
  if (timing.window_ns > timing.period_ns &&
      (timing.window_ns % timing.period_ns != 0 || periods > kMaxWindowPeriods))
    file.fault(window, fmt::format("must be shorter than period_ms or 1 to {} times it",
                                   kMaxWindowPeriods));
  return timing;
}

void read_sensors(TomlFile& file, DeviceModel& d) {
  d.power_samples = read_timing(file, "sensors.power_samples", true);
  d.power_samples.capacity = whole(file, "sensors.power_samples.capacity", 1, 255);
  d.power_samples.jitter_us =
      static_cast<int>(file.number_or("sensors.power_samples.jitter_ms", 0, 0, 10000) * 1000);
  d.power_instant = read_timing(file, "sensors.power_instant", true);
  d.power_average = read_timing(file, "sensors.power_average", true);
  d.utilization = read_timing(file, "sensors.utilization", false);
  d.utilization.capacity = whole(file, "sensors.utilization.capacity", 1, 255);
  d.energy_tick_ns = milliseconds(file, "sensors.energy_tick_ms", 1);
  d.gpm_period_ns = milliseconds(file, "sensors.counters_period_ms", 1);
  d.power_noise_cv = file.number("sensors.power_noise_cv", 0, 1);
  d.power_drift_sigma = file.number("sensors.power_drift_sigma", 0, 1);
  d.power_drift_tau_s = file.number("sensors.power_drift_tau_s", 0.1, 1e6);
  d.power_gain = file.number("sensors.power_gain", 0.1, 10);
}

std::uint8_t read_support(TomlFile& file, const std::string& key) {
  const std::string answer = file.text(key);
  if (answer == "yes") return static_cast<std::uint8_t>(gpu::Support::kYes);
  if (answer == "no") return static_cast<std::uint8_t>(gpu::Support::kNo);
  if (answer == "denied") return static_cast<std::uint8_t>(gpu::Support::kNoPermission);
  file.fault(key, R"(must be "yes", "no" or "denied")");
  return 0;
}

// In the order of gpu::Reading and gpu::Control.
constexpr std::array<const char*, static_cast<std::size_t>(gpu::Reading::kCount)> kReadings = {
    "power_samples", "power_instant", "power_average", "energy_counter", "sm_clock", "memory_clock",
    "utilization",   "temperature",   "event_reasons", "counters",       "processes"};
constexpr std::array<const char*, static_cast<std::size_t>(gpu::Control::kCount)> kControls = {
    "sm_clocks", "memory_clocks", "power_limit"};
constexpr std::array<const char*, kActivityCount> kActivities = {
    "gr_active",   "sm_active",   "sm_occupancy", "tensor_active",       "dram_active",
    "fp64_active", "fp32_active", "fp16_active",  "pcie_tx_bytes_per_s", "pcie_rx_bytes_per_s"};

void read_support(TomlFile& file, DeviceModel& d) {
  for (std::size_t i = 0; i < kReadings.size(); ++i)
    d.readings[i] = read_support(file, std::string("readings.") + kReadings[i]);
  for (std::size_t i = 0; i < kControls.size(); ++i)
    d.controls[i] = read_support(file, std::string("controls.") + kControls[i]);
  for (const std::string& name : file.texts_or("readings.counter_names", {})) {
    const auto found = std::find(kActivities.begin(), kActivities.end(), name);
    if (found == kActivities.end())
      file.fault("readings.counter_names",
                 fmt::format("has '{}'; known are {}", name, fmt::join(kActivities, ", ")));
    else
      d.activities[static_cast<std::size_t>(found - kActivities.begin())] = 1;
  }
}

}  // namespace

Result<DeviceModel> load_device(const fs::path& path) {
  GPOEO_TRY(TomlFile file, TomlFile::read(path));
  DeviceModel d;
  std::memset(static_cast<void*>(&d), 0, sizeof d);
  read_identity(file, d);
  read_clocks(file, d);
  read_power(file, d);
  read_sensors(file, d);
  read_support(file, d);
  GPOEO_TRY_STATUS(file.finish());
  return d;
}

Result<std::vector<std::string>> device_names() {
  GPOEO_TRY(const fs::path data, data_directory());
  std::vector<std::string> names;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(data / "twin" / "devices", failed))
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  if (failed)
    return make_error(
        ErrorKind::kIo,
        fmt::format("cannot list {}: {}", (data / "twin" / "devices").string(), failed.message()));
  std::sort(names.begin(), names.end());
  return names;
}

Result<DeviceModel> find_device(std::string_view name_or_path) {
  if (name_or_path.find('/') != std::string_view::npos || name_or_path.ends_with(".toml"))
    return load_device(fs::path(name_or_path));
  GPOEO_TRY(const std::vector<std::string> names, device_names());
  if (std::find(names.begin(), names.end(), name_or_path) == names.end())
    return make_error(ErrorKind::kNotFound,
                      fmt::format("no simulated device '{}'; there are {}, or give the path of "
                                  "your own .toml file",
                                  name_or_path, fmt::join(names, ", ")));
  GPOEO_TRY(const fs::path data, data_directory());
  return load_device(data / "twin" / "devices" / (std::string(name_or_path) + ".toml"));
}

}  // namespace gpoeo::twin
