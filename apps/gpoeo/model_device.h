// SPDX-License-Identifier: Apache-2.0
// What the model module needs to know of a card, from a device file of the twin (these hold the
// constants of real cards too).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/dataset.h"
#include "model/features.h"

namespace gpoeo::app {

struct KnownDevice {
  model::Device device;
  std::vector<model::MemoryClock> clocks;  // every pair, memory clocks descending
};
// `name_or_path` as `gpoeo twin list` has it.
Result<KnownDevice> known_device(std::string_view name_or_path);

// Adds TABLE or TABLE@DEVICE to the set; families from the families.csv beside the table, if there.
Status add_table_argument(model::Dataset& dataset, const std::string& argument,
                          const std::string& default_device);

}  // namespace gpoeo::app
