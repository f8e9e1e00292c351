// SPDX-License-Identifier: Apache-2.0
#include "control/gpu_channel.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpoeo::control {
namespace {

// A driver call that failed once may work the next moment.
constexpr int kRestoreAttempts = 3;

constexpr std::string_view kCannotTell = "unknown (this driver cannot tell)";

// Whether going from one bound to another lets the card do more.
template <typename T>
bool widens(const std::optional<T>& from, const std::optional<T>& to) {
  return from && (!to || *to > *from);
}

Hertz lowest_memory_clock(const gpu::Device& device) {
  Hertz lowest = device.capabilities().clocks.front().memory;
  for (const auto& entry : device.capabilities().clocks) lowest = std::min(lowest, entry.memory);
  return lowest;
}

}  // namespace

GpuChannel::GpuChannel(GpuInput input, const Clock& clock)
    : device_(input.device),
      clock_(clock),
      guard_(std::move(input.guard)),
      trace_(std::move(input.trace)),
      sampler_(std::make_unique<telemetry::Sampler>(*device_, clock)),
      meter_(std::make_unique<telemetry::EnergyMeter>(sampler_->history())),
      book_(std::make_unique<EnergyBook>(*sampler_, *meter_, clock.now())) {
  sampler_->request_energy_mark();
}

GpuChannel::Polled GpuChannel::poll(Instant now) {
  const Instant next = sampler_->poll(now);
  if (meter_->update()) sampler_->set_counter_role(meter_->role());
  if (trace_) trace_->append_new(sampler_->history());
  auto stretch = book_->poll(now);
  if (const auto hole = book_->take_hole()) {
    notes_.push_back(fmt::format("GPU {}: {:.0f} s without an energy reading",
                                 device_->identity().index, hole->value()));
  }
  return {.next_poll = next, .stretch = stretch};
}

std::vector<EnergyStretch> GpuChannel::close(Instant now) {
  sampler_->request_readings();
  sampler_->request_energy_mark();
  sampler_->poll(now);
  meter_->update();
  if (trace_) {
    trace_->append_new(sampler_->history());
    if (Status written = trace_->flush(); !written) notes_.push_back(written.error().text);
  }
  return book_->close(now);
}

Status GpuChannel::set_clocks(const policy::ClockSetting& setting) {
  const Instant now = clock_.now();
  sampler_->request_readings();
  if (setting.is_default()) {
    GPOEO_TRY_STATUS(restore());
    asked_.reset();
    settle_.emplace(now, std::nullopt);
    return {};
  }
  if (!guard_) return make_error(ErrorKind::kNotSupported, "clocks may not be set in this run");
  // What widens goes first, so that no bound in between is tighter than both settings.
  for (const bool widening : {true, false}) {
    if (widens(power_limit_.value, setting.power_limit) == widening) {
      GPOEO_TRY_STATUS(set_power_limit(setting.power_limit));
    }
    if (widens(memory_.value, setting.memory) == widening) {
      GPOEO_TRY_STATUS(set_memory(setting.memory));
    }
    if (widens(sm_.value, setting.sm) == widening) GPOEO_TRY_STATUS(set_sm(setting.sm));
  }
  settle_.emplace(now, asked_);
  return {};
}

Status GpuChannel::set_sm(const std::optional<Hertz>& upper) {
  if (sm_.stands(upper)) return {};
  sm_.sure = false;
  if (upper) {
    // An upper bound only, so that idle gaps still clock down.
    asked_ = gpu::ClockRange{device_->capabilities().sm_clocks().front(), *upper};
    GPOEO_TRY_STATUS(guard_->lock_sm_clocks(*asked_));
    clocks_found_ = describe(guard_->saved().sm_clocks.value(), kCannotTell);
  } else {
    GPOEO_TRY_STATUS(guard_->restore_only(gpu::Control::kSmClocks));
    asked_.reset();
  }
  sm_ = {upper};
  return {};
}

Status GpuChannel::set_memory(const std::optional<Hertz>& upper) {
  if (memory_.stands(upper)) return {};
  memory_.sure = false;
  if (upper) {
    GPOEO_TRY_STATUS(guard_->lock_memory_clocks({lowest_memory_clock(*device_), *upper}));
  } else {
    GPOEO_TRY_STATUS(guard_->restore_only(gpu::Control::kMemoryClocks));
  }
  memory_ = {upper};
  return {};
}

Status GpuChannel::set_power_limit(const std::optional<Watts>& limit) {
  if (power_limit_.stands(limit)) return {};
  power_limit_.sure = false;
  if (limit) {
    GPOEO_TRY_STATUS(guard_->set_power_limit(*limit));
  } else {
    GPOEO_TRY_STATUS(guard_->restore_only(gpu::Control::kPowerLimit));
  }
  power_limit_ = {limit};
  return {};
}

// Each control on its own: of two, one may be back and the other not.
void GpuChannel::note_restored(const RestoreOutcome& outcome) {
  const bool worked = outcome.status.has_value();
  switch (outcome.control) {
    case gpu::Control::kSmClocks:
      sm_.sure = worked;
      if (!worked) break;
      sm_.restored();
      asked_.reset();
      clocks_restored_ = outcome.restored_to;
      break;
    case gpu::Control::kMemoryClocks:
      memory_.sure = worked;
      if (worked) memory_.restored();
      break;
    case gpu::Control::kPowerLimit:
      power_limit_.sure = worked;
      if (worked) power_limit_.restored();
      break;
    case gpu::Control::kCount:
      break;
  }
}

Status GpuChannel::restore() {
  if (!guard_ || !guard_->touched()) return {};
  Status failed;
  for (int attempt = 0; attempt < kRestoreAttempts && guard_->touched(); ++attempt) {
    failed = {};
    for (const auto& outcome : guard_->restore()) {
      note_restored(outcome);
      if (outcome.status) continue;
      notes_.push_back(fmt::format("GPU {}: restoring {} failed: {}", device_->identity().index,
                                   gpu::to_string(outcome.control), outcome.status.error().text));
      if (failed) failed = outcome.status;
    }
  }
  restore_failed_ = guard_->touched();
  if (restore_failed_) {
    notes_.push_back(fmt::format("GPU {}: clocks were NOT restored", device_->identity().index));
  }
  return failed;
}

std::optional<Instant> GpuChannel::settled(Instant now) {
  if (!settle_) return now;
  const auto& report = settle_->update(sampler_->history(), now);
  sampler_->request_readings();
  if (report.state == telemetry::SettleState::kWaiting) return std::nullopt;
  return report.settled_at;
}

bool GpuChannel::held() const {
  return !settle_ || settle_->report().state != telemetry::SettleState::kCouldNotHold;
}

Result<telemetry::IterationEnergy> GpuChannel::iteration_energy(std::span<const Instant> ends) {
  auto measured = telemetry::iteration_energy(*meter_, ends);
  if (!measured) {
    sampler_->request_readings();
    sampler_->request_energy_mark();
  }
  return measured;
}

Result<telemetry::CounterAverage> GpuChannel::activity(std::span<const Instant> ends) const {
  const auto& readings = sampler_->history().counters;
  if (readings.empty()) {
    const auto& stats = sampler_->stats(gpu::Reading::kCounters);
    return make_error(stats.dropped ? ErrorKind::kNotSupported : ErrorKind::kIo,
                      fmt::format("GPU {}: {} of {} counter readings failed and none came",
                                  device_->identity().index, stats.failures, stats.calls));
  }
  return telemetry::average_counters(readings, ends);
}

GpuChannel::Condition GpuChannel::condition(Instant from, Instant to) const {
  struct Mean {
    double sum = 0;
    int number = 0;
    void add(double value) {
      sum += value;
      ++number;
    }
    double value() const { return sum / number; }
  };
  Mean gpu, memory, sm, mem;
  const auto& status = sampler_->history().status;
  for (std::size_t i = status.first_after(from); i < status.size() && status[i].time <= to; ++i) {
    if (const auto& u = status[i].utilization) {
      gpu.add(u->gpu);
      memory.add(u->memory);
    }
    if (const auto& f = status[i].sm_clock) sm.add(f->value());
    if (const auto& f = status[i].memory_clock) mem.add(f->value());
  }
  Condition c;
  if (gpu.number > 0) {
    c.gpu_utilization = gpu.value();
    c.memory_utilization = memory.value();
  }
  if (sm.number > 0) c.sm_clock = Hertz(sm.value());
  if (mem.number > 0) c.memory_clock = Hertz(mem.value());
  return c;
}

Result<telemetry::WindowEnergy> GpuChannel::energy(Instant from, Instant to) {
  auto measured = meter_->energy(from, to);
  if (!measured) {
    sampler_->request_readings();
    sampler_->request_energy_mark();
  }
  return measured;
}

bool GpuChannel::idle(Instant now) const {
  constexpr Duration kStale = std::chrono::seconds(5);
  const auto& status = sampler_->history().status;
  for (std::size_t i = status.size(); i-- > 0 && now - status[i].time < kStale;) {
    if (status[i].utilization) return status[i].utilization->gpu <= 0;
  }
  return false;
}

std::vector<std::string> GpuChannel::take_notes() {
  for (const auto& event : sampler_->take_events()) {
    if (event.kind == telemetry::SamplerEventKind::kPowerGap) continue;  // summed up in section()
    if (event.kind == telemetry::SamplerEventKind::kReadingDropped) continue;  // "not available"
    notes_.push_back(event.text);
  }
  return std::exchange(notes_, {});
}

std::vector<std::string> GpuChannel::healed_notes() const {
  std::vector<std::string> notes;
  if (!guard_) return notes;
  for (const auto& outcome : guard_->healed()) {
    notes.push_back(fmt::format("GPU {}: {} left by an earlier gpoeo were restored to {}",
                                device_->identity().index, gpu::to_string(outcome.control),
                                outcome.restored_to));
  }
  return notes;
}

std::optional<Hertz> GpuChannel::found_upper_clock() const {
  if (device_->controls() == nullptr) return std::nullopt;
  const auto lock = device_->controls()->sm_clock_lock();
  if (!lock || !*lock) return std::nullopt;
  return (*lock)->max;
}

std::optional<Watts> GpuChannel::newest_power() const {
  const auto& power = sampler_->history().power;
  if (power.empty()) return std::nullopt;
  return power.back().power;
}

std::optional<Hertz> GpuChannel::newest_sm_clock() const {
  const auto& status = sampler_->history().status;
  for (std::size_t i = status.size(); i-- > 0;) {
    if (status[i].sm_clock) return status[i].sm_clock;
  }
  return std::nullopt;
}

report::GpuSection GpuChannel::section() const {
  const auto& identity = device_->identity();
  report::GpuSection section{.index = identity.index, .uuid = identity.uuid, .name = identity.name};
  if (book_->duration().value() > 0) {
    section.energy_j = book_->energy().value();
    section.mean_power_w = (book_->energy() / book_->duration()).value();
  }
  section.energy_source = std::string(telemetry::to_string(meter_->choice().source));
  section.energy_source_reason = meter_->choice().reason;
  for (const gpu::Reading reading : sampler_->unavailable()) {
    section.unavailable.emplace_back(gpu::to_string(reading));
  }
  section.clocks_found = clocks_found_;
  section.clocks_restored = clocks_restored_;
  section.restore_failed = restore_failed_ && touched();
  section.power_gaps = sampler_->gaps();
  section.power_gap_s = to_seconds(sampler_->gap_time()).value();
  return section;
}

}  // namespace gpoeo::control
