// SPDX-License-Identifier: Apache-2.0
// Which counter source a run would use on a GPU, why not a better one, and the cure.
#pragma once

#include <filesystem>
#include <string>

#include "gpu/device.h"

namespace gpoeo::app {

struct CounterAdvice {
  bool ok = true;
  std::string text;
  std::string cure;  // empty when all is well
};

// `params` is the driver's list of module parameters; one that cannot be read is told as that.
CounterAdvice advise_on_counters(
    const gpu::Device& device, bool root,
    const std::filesystem::path& params = "/proc/driver/nvidia/params");

}  // namespace gpoeo::app
