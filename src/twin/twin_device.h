// SPDX-License-Identifier: Apache-2.0
// The GPU port on a simulated card, straight (no NVML between).
#pragma once

#include <memory>

#include "gpu/device.h"
#include "twin/card_store.h"

namespace gpoeo::twin {

// Borrows the store, which must outlive the device. Opened read-only, controls() is nullptr.
Result<std::unique_ptr<gpu::Device>> open_device(CardStore& store, unsigned card,
                                                 gpu::Access access);

// All cards of a store as a driver. Borrows the store.
class TwinDriver final : public gpu::Driver {
 public:
  explicit TwinDriver(CardStore& store) : store_(store) {}
  std::string version() const override;
  unsigned device_count() const override { return store_.card_count(); }
  Result<std::unique_ptr<gpu::Device>> open(unsigned index, gpu::Access access) override {
    return open_device(store_, index, access);
  }

 private:
  CardStore& store_;
};

}  // namespace gpoeo::twin
