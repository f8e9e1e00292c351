// SPDX-License-Identifier: Apache-2.0
// Which counter source a run would use on a GPU, why not a better one, and the cure.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "base/result.h"
#include "gpu/device.h"

namespace gpoeo::app {

struct CounterAdvice {
  bool ok = true;
  std::string text;
  std::string cure;  // empty when all is well
};

// Tries CUPTI on a GPU without sampling anything: what was found there, or why it would not do.
using TryCupti = std::function<Result<std::string>(const gpu::Device& device)>;

// By gpoeo-counters, which gets a few seconds for it.
Result<std::string> try_cupti(const gpu::Device& device);

// `params` is the driver's list of module parameters; one that cannot be read is told as that.
CounterAdvice advise_on_counters(
    const gpu::Device& device, bool root, const TryCupti& try_it,
    const std::filesystem::path& params = "/proc/driver/nvidia/params");

}  // namespace gpoeo::app
