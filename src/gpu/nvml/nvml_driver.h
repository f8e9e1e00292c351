// SPDX-License-Identifier: Apache-2.0
// The port over NVIDIA's management library. Our program is a client like any other: the same
// adapter drives a real card and the twin's libnvidia-ml.so.1, and identity().simulated tells them
// apart.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "gpu/device.h"

namespace gpoeo::nvml {

struct NvmlOptions {
  std::string library = "libnvidia-ml.so.1";  // a name for the loader, or a path
};

// `clock` outlives the driver and its devices; sample time stamps come back on its scale. For a
// twin that runs faster than the wall it must be the twin's clock.
// kNotFound when there is no library, kDeviceLost when the driver does not answer.
Result<std::unique_ptr<gpu::Driver>> open_nvml(const NvmlOptions& options, const Clock& clock);

}  // namespace gpoeo::nvml
