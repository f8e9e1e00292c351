// SPDX-License-Identifier: Apache-2.0
#include "twin/twin_device.h"

#include <fmt/format.h>

#include "twin/card_front.h"

namespace gpoeo::twin {
namespace {

class TwinControls final : public gpu::Controls {
 public:
  explicit TwinControls(CardFront front) : front_(front) {}

  Status lock_sm_clocks(gpu::ClockRange range) override { return front_.lock_sm_clocks(range); }
  Status reset_sm_clocks() override { return front_.reset_sm_clocks(); }
  Status lock_memory_clocks(gpu::ClockRange range) override {
    return front_.lock_memory_clocks(range);
  }
  Status reset_memory_clocks() override { return front_.reset_memory_clocks(); }
  Status set_power_limit(Watts limit) override { return front_.set_power_limit(limit); }
  Result<Watts> power_limit_setting() override { return front_.power_limit(); }
  Status reset_power_limit() override {
    return front_.set_power_limit(Watts(front_.device().limit_default_w));
  }
  Result<std::optional<gpu::ClockRange>> sm_clock_lock() override {
    GPOEO_TRY(const Locks locks, front_.read_locks());
    return locks.sm;
  }
  Result<std::optional<gpu::ClockRange>> memory_clock_lock() override {
    GPOEO_TRY(const Locks locks, front_.read_locks());
    return locks.memory;
  }

 private:
  CardFront front_;
};

gpu::Capabilities capabilities_of(const DeviceModel& d) {
  gpu::Capabilities capabilities;
  for (int i = 0; i < static_cast<int>(gpu::Reading::kCount); ++i)
    capabilities.readings[i] = d.support(static_cast<gpu::Reading>(i));
  for (int i = 0; i < static_cast<int>(gpu::Control::kCount); ++i)
    capabilities.controls[i] = d.support(static_cast<gpu::Control>(i));
  for (std::size_t m = 0; m < static_cast<std::size_t>(d.memory_clock_count); ++m) {
    gpu::MemoryClockEntry entry;
    entry.memory = megahertz(d.memory_mhz[m]);
    for (int i = d.sm_first[m]; i < d.sm_first[m] + d.sm_number[m]; ++i)
      entry.sm.push_back(megahertz(d.sm_mhz[static_cast<std::size_t>(i)]));
    capabilities.clocks.push_back(std::move(entry));
  }
  capabilities.power_limits =
      gpu::PowerLimits{Watts(d.limit_min_w), Watts(d.limit_max_w), Watts(d.limit_default_w)};
  return capabilities;
}

class TwinDevice final : public gpu::Device {
 public:
  TwinDevice(CardStore& store, unsigned card, gpu::Access access)
      : front_(store, card), capabilities_(capabilities_of(store.device(card))) {
    identity_.index = card;
    identity_.uuid = store.name(card).uuid;
    identity_.name = store.device(card).name.data();
    identity_.pci_bus_id = store.name(card).pci_bus_id;
    identity_.simulated = true;
    if (access == gpu::Access::kControl) controls_.emplace(front_);
  }

  const gpu::DeviceIdentity& identity() const override { return identity_; }
  const gpu::Capabilities& capabilities() const override { return capabilities_; }
  Result<std::vector<gpu::PowerSample>> power_samples_since(Instant since) override {
    return front_.power_samples_since(since);
  }
  Result<Watts> power_instant() override { return front_.power_instant(); }
  Result<Watts> power_average() override { return front_.power_average(); }
  Result<Joules> energy_counter() override { return front_.energy_counter(); }
  Result<Hertz> sm_clock() override { return front_.sm_clock(); }
  Result<Hertz> memory_clock() override { return front_.memory_clock(); }
  Result<gpu::Utilization> utilization() override { return front_.utilization(); }
  Result<Celsius> temperature() override { return front_.temperature(); }
  Result<gpu::EventReasons> event_reasons() override { return front_.event_reasons(); }
  Result<gpu::Counters> counters() override;
  Result<std::vector<gpu::ComputeProcess>> compute_processes() override {
    return front_.compute_processes();
  }
  Result<Watts> power_limit() override { return front_.power_limit(); }
  gpu::Controls* controls() override { return controls_ ? &*controls_ : nullptr; }

 private:
  CardFront front_;
  gpu::DeviceIdentity identity_;
  gpu::Capabilities capabilities_;
  std::optional<TwinControls> controls_;
  std::optional<GpmSnapshot> last_;
};

Result<gpu::Counters> TwinDevice::counters() {
  GPOEO_TRY(const GpmSnapshot now, front_.gpm_snapshot());
  if (!last_ || now.time <= last_->time) {
    if (!last_) last_ = now;
    return make_error(ErrorKind::kBusy,
                      fmt::format("the counters of simulated GPU {} have not moved since the last "
                                  "call; ask again after their period",
                                  identity_.index));
  }
  gpu::Counters counters;
  counters.window = to_seconds(now.time - last_->time);
  const auto mean = [&](Activity activity) -> std::optional<double> {
    const auto i = static_cast<std::size_t>(activity);
    if (!now.present[i]) return std::nullopt;
    return (now.integral[i] - last_->integral[i]) / counters.window.value();
  };
  counters.gr_active = mean(Activity::kGrActive);
  counters.sm_active = mean(Activity::kSmActive);
  counters.sm_occupancy = mean(Activity::kSmOccupancy);
  counters.tensor_active = mean(Activity::kTensorActive);
  counters.dram_active = mean(Activity::kDramActive);
  counters.fp64_active = mean(Activity::kFp64Active);
  counters.fp32_active = mean(Activity::kFp32Active);
  counters.fp16_active = mean(Activity::kFp16Active);
  counters.pcie_tx_bytes_per_s = mean(Activity::kPcieTxBytesPerS);
  counters.pcie_rx_bytes_per_s = mean(Activity::kPcieRxBytesPerS);
  last_ = now;
  return counters;
}

}  // namespace

Result<std::unique_ptr<gpu::Device>> open_device(CardStore& store, unsigned card,
                                                 gpu::Access access) {
  if (card >= store.card_count())
    return make_error(ErrorKind::kInvalid,
                      fmt::format("no simulated GPU {}; there are {}", card, store.card_count()));
  return std::make_unique<TwinDevice>(store, card, access);
}

std::string TwinDriver::version() const {
  return store_.card_count() > 0 ? store_.device(0).driver_version.data() : "";
}

}  // namespace gpoeo::twin
