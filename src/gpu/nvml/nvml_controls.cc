// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml/nvml_controls.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace gpoeo::nvml {
namespace {

unsigned whole_mhz(Hertz f) { return static_cast<unsigned>(std::lround(to_mhz(f))); }

// `clocks` ascending.
Status require_supported(Hertz wanted, const std::vector<Hertz>& clocks, std::string_view label,
                         std::string_view what) {
  const auto same = [](Hertz a, Hertz b) { return std::abs(to_mhz(a) - to_mhz(b)) < 0.5; };
  const auto above = std::lower_bound(clocks.begin(), clocks.end(), wanted);
  if (above != clocks.end() && same(*above, wanted)) return {};
  if (above != clocks.begin() && same(*(above - 1), wanted)) return {};
  std::string nearest;
  if (above == clocks.end()) {
    nearest = fmt::format("the highest is {:.0f} MHz", to_mhz(clocks.back()));
  } else if (above == clocks.begin()) {
    nearest = fmt::format("the lowest is {:.0f} MHz", to_mhz(clocks.front()));
  } else {
    nearest =
        fmt::format("the nearest are {:.0f} and {:.0f} MHz", to_mhz(*(above - 1)), to_mhz(*above));
  }
  return make_error(ErrorKind::kInvalid, fmt::format("{}: {:.1f} MHz is no supported {} clock; {}",
                                                     label, to_mhz(wanted), what, nearest));
}

Status require_supported(gpu::ClockRange range, const std::vector<Hertz>& clocks,
                         std::string_view label, std::string_view what) {
  if (range.min > range.max) {
    return make_error(ErrorKind::kInvalid,
                      fmt::format("{}: {} clock range {:.0f} to {:.0f} MHz is upside down", label,
                                  what, to_mhz(range.min), to_mhz(range.max)));
  }
  if (clocks.empty()) return {};  // the driver hides its clocks: let it judge
  GPOEO_TRY_STATUS(require_supported(range.min, clocks, label, what));
  return require_supported(range.max, clocks, label, what);
}

}  // namespace

NvmlControls::NvmlControls(std::shared_ptr<Session> session, abi::DeviceHandle handle,
                           std::string label, const gpu::Capabilities& capabilities,
                           std::string refusal)
    : session_(std::move(session)),
      handle_(handle),
      label_(std::move(label)),
      capabilities_(capabilities),
      refusal_(std::move(refusal)),
      set_(session_->library().setters()) {}

bool NvmlControls::has(gpu::Control control) const {
  switch (control) {
    case gpu::Control::kSmClocks:
      return set_.lock_sm != nullptr && set_.reset_sm != nullptr;
    case gpu::Control::kMemoryClocks:
      return set_.lock_memory != nullptr && set_.reset_memory != nullptr;
    case gpu::Control::kPowerLimit:
      return set_.set_limit != nullptr;
    case gpu::Control::kCount:
      break;
  }
  return false;
}

template <typename Function, typename... Args>
Status NvmlControls::call(Function function, std::string_view name, Args... args) {
  if (!refusal_.empty()) {
    return make_error(ErrorKind::kNotSupported, fmt::format("{}: {}", label_, refusal_));
  }
  if (function == nullptr) return session_->library().missing(label_, name);
  return session_->library().check(function(handle_, args...), label_, name);
}

Status NvmlControls::lock_sm_clocks(gpu::ClockRange range) {
  GPOEO_TRY_STATUS(require_supported(range, capabilities_.sm_clocks(), label_, "SM"));
  return call(set_.lock_sm, "nvmlDeviceSetGpuLockedClocks", whole_mhz(range.min),
              whole_mhz(range.max));
}

Status NvmlControls::reset_sm_clocks() {
  return call(set_.reset_sm, "nvmlDeviceResetGpuLockedClocks");
}

Status NvmlControls::lock_memory_clocks(gpu::ClockRange range) {
  std::vector<Hertz> clocks;
  for (const auto& entry : capabilities_.clocks) clocks.push_back(entry.memory);
  std::ranges::sort(clocks);
  GPOEO_TRY_STATUS(require_supported(range, clocks, label_, "memory"));
  return call(set_.lock_memory, "nvmlDeviceSetMemoryLockedClocks", whole_mhz(range.min),
              whole_mhz(range.max));
}

Status NvmlControls::reset_memory_clocks() {
  return call(set_.reset_memory, "nvmlDeviceResetMemoryLockedClocks");
}

Status NvmlControls::set_power_limit(Watts limit) {
  if (const auto& limits = capabilities_.power_limits) {
    if (limit < limits->min || limit > limits->max) {
      return make_error(
          ErrorKind::kInvalid,
          fmt::format("{}: power limit {:.1f} W is outside {:.0f} to {:.0f} W", label_,
                      limit.value(), limits->min.value(), limits->max.value()));
    }
  }
  if (!(limit.value() > 0 && limit.value() < 1e6)) {
    return make_error(ErrorKind::kInvalid,
                      fmt::format("{}: {} W is no power limit", label_, limit.value()));
  }
  return call(set_.set_limit, "nvmlDeviceSetPowerManagementLimit",
              static_cast<unsigned>(std::lround(limit.value() * 1e3)));
}

Status NvmlControls::reset_power_limit() {
  if (!capabilities_.power_limits) {
    return make_error(ErrorKind::kNotSupported,
                      fmt::format("{}: the driver does not tell the default power limit", label_));
  }
  return set_power_limit(capabilities_.power_limits->standard);
}

Result<Watts> NvmlControls::power_limit_setting() {
  constexpr std::string_view kCall = "nvmlDeviceGetPowerManagementLimit";
  const Library& lib = session_->library();
  if (lib.get().set_limit == nullptr) {
    return make_error(ErrorKind::kNotSupported,
                      fmt::format("{}: this driver has no {}", label_, kCall));
  }
  unsigned milliwatts = 0;
  GPOEO_TRY_STATUS(lib.check(lib.get().set_limit(handle_, &milliwatts), label_, kCall));
  return Watts(milliwatts * 1e-3);
}

Result<std::optional<gpu::ClockRange>> NvmlControls::lock_of(abi::ClockType type,
                                                             std::string_view what) {
  const Library& lib = session_->library();
  if (lib.get().twin_locked_clocks == nullptr) {
    return make_error(ErrorKind::kNotSupported,
                      fmt::format("{}: NVML cannot tell the {} clock lock in force", label_, what));
  }
  unsigned min_mhz = 0;
  unsigned max_mhz = 0;
  const abi::Return code = lib.get().twin_locked_clocks(handle_, type, &min_mhz, &max_mhz);
  if (code == abi::kNotFound) return std::optional<gpu::ClockRange>();
  GPOEO_TRY_STATUS(lib.check(code, label_, "gpoeoTwinDeviceGetLockedClocks"));
  return std::optional(gpu::ClockRange{megahertz(min_mhz), megahertz(max_mhz)});
}

Result<std::optional<gpu::ClockRange>> NvmlControls::sm_clock_lock() {
  return lock_of(abi::kClockSm, "SM");
}

Result<std::optional<gpu::ClockRange>> NvmlControls::memory_clock_lock() {
  return lock_of(abi::kClockMemory, "memory");
}

}  // namespace gpoeo::nvml
