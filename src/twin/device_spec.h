// SPDX-License-Identifier: Apache-2.0
// Reads a device file (data/twin/devices/*.toml, or anybody's own) into a DeviceModel. Every
// number in a file says where it comes from; the format is explained in docs/twin.md.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "twin/device_model.h"

namespace gpoeo::twin {

// kNotFound or kInvalid in one line that names file, key and cure.
Result<DeviceModel> load_device(const std::filesystem::path& file);
// `name_or_path`: a path when it has a '/' or ends in ".toml", else the short name of a shipped
// device ("a100"). kNotFound lists the names there are.
Result<DeviceModel> find_device(std::string_view name_or_path);
// Short names of the shipped devices, sorted.
Result<std::vector<std::string>> device_names();

}  // namespace gpoeo::twin
