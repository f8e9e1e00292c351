// SPDX-License-Identifier: Apache-2.0
// Where the shipped data is: $GPOEO_DATA_DIR, else beside the executable or library that asks
// (build tree: any parent's data/; installed: ../share/gpoeo), else the install prefix.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace gpoeo::twin {

// The folder that holds twin/devices; kNotFound with the places tried and the cure.
Result<std::filesystem::path> data_directory();

}  // namespace gpoeo::twin
