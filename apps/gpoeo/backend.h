// SPDX-License-Identifier: Apache-2.0
// Which driver a verb talks to: the machine's own NVML, or a twin's. The only place that names
// adapters.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "control/journal.h"
#include "gpu/device.h"
#include "gpu/selection.h"
#include "twin/segment.h"

namespace gpoeo::app {

// The options that several verbs share.
struct BackendOptions {
  // Device, device file, "a100+v100" for cards of several kinds, or the name of a twin that is up;
  // empty: real GPUs.
  std::string twin;
  double twin_speed = 1.0;  // simulated seconds per second, for a twin that this verb makes
  unsigned twin_cards = 1;  // of each kind
};

// Everything outlives the driver that it holds. Movable.
struct Backend {
  std::unique_ptr<twin::Segment> segment;  // null: real GPUs
  bool owns_segment = false;               // made by us: removed with us
  std::unique_ptr<Clock> real_clock;       // null when the segment's is used
  Clock* clock = nullptr;
  std::unique_ptr<gpu::Driver> driver;
  control::DriverRef ref;

  Backend() = default;
  Backend(Backend&&) noexcept = default;
  Backend& operator=(Backend&&) = delete;
  ~Backend();

  bool simulated() const { return segment != nullptr; }
};

// With an empty `twin` and $GPOEO_TWIN set, that twin. kNotFound / kInvalid with the cure.
Result<Backend> open_backend(const BackendOptions& options);
// The driver that a journal speaks of.
Result<Backend> open_backend(const control::DriverRef& ref);

// The twin's libnvidia-ml.so.1: $GPOEO_TWIN_LIBRARY, beside this executable (build tree or
// installed), kNotFound otherwise.
Result<std::string> twin_library();

// Opens the GPUs that the user chose; never empty.
struct OpenGpus {
  std::vector<std::unique_ptr<gpu::Device>> devices;
  std::string source;   // what chose them
  std::string warning;  // why the choice may be wrong
};
Result<OpenGpus> open_gpus(Backend& backend, const std::optional<std::string>& gpus_option,
                           gpu::Access access);

}  // namespace gpoeo::app
