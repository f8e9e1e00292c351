// SPDX-License-Identifier: Apache-2.0
// Which GPUs a job uses: from --gpus, else CUDA_VISIBLE_DEVICES, else SLURM_JOB_GPUS, else all.
// A pure function of the environment and of the cards that the driver shows.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpu/types.h"

namespace gpoeo::gpu {

// nullopt when the variable is not set.
using EnvironmentLookup = std::function<std::optional<std::string>(const char* name)>;

struct Selection {
  // Indices into the driver's order, each once, in the order in which the job numbers them. May be
  // empty: CUDA_VISIBLE_DEVICES="" hides every GPU from the job.
  std::vector<unsigned> indices;
  std::string source;  // "--gpus", "CUDA_VISIBLE_DEVICES", "SLURM_JOB_GPUS" or "all GPUs"
  // Why the answer may be wrong (device order), empty when it is certain.
  std::string warning;
};

// `gpus_option` is the value of --gpus: "all", or a list of indices in the driver's order, UUIDs or
// unique beginnings of one ("GPU-7714"), and PCI ids ("0000:65:00.0", "65:00.0"). Each bad entry of
// it is an error; kNotSupported for a MIG UUID.
//
// CUDA_VISIBLE_DEVICES is read as CUDA does: parsing stops at the first entry that is not valid,
// and what stood before it counts; "" and "-1" hide everything. Its indices are the driver's with
// CUDA_DEVICE_ORDER=PCI_BUS_ID; in CUDA's own order (fastest first) they are too when all cards are
// of one name, else the warning says so. An index there is relative to what a container or an outer
// wrapper shows, as the driver's are.
Result<Selection> select_gpus(const std::optional<std::string>& gpus_option,
                              const EnvironmentLookup& environment,
                              const std::vector<DeviceIdentity>& devices);

}  // namespace gpoeo::gpu
