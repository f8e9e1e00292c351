// SPDX-License-Identifier: Apache-2.0
#include "model_device.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "response/response_table.h"
#include "twin/device_spec.h"

namespace gpoeo::app {

Result<KnownDevice> known_device(std::string_view name_or_path) {
  GPOEO_TRY(const twin::DeviceModel d, twin::find_device(name_or_path));
  KnownDevice known;
  known.device.name = d.name.data();
  known.device.sm_mhz = d.sm_mhz[static_cast<std::size_t>(d.default_sm)];
  known.device.power_limit_w = d.limit_default_w;
  known.device.memory_mhz = d.memory_mhz[0];
  known.device.sm_count = d.sm_count;
  known.device.bandwidth_gb_per_s = d.bandwidth_bytes_per_s / 1e9;
  for (int m = 0; m < d.memory_clock_count; ++m) {
    const auto at = static_cast<std::size_t>(m);
    model::MemoryClock& clock = known.clocks.emplace_back();
    clock.memory_mhz = d.memory_mhz[at];
    for (int s = d.sm_first[at]; s < d.sm_first[at] + d.sm_number[at]; ++s)
      clock.sm_mhz.push_back(d.sm_mhz[static_cast<std::size_t>(s)]);
  }
  return known;
}

Status add_table_argument(model::Dataset& dataset, const std::string& argument,
                          const std::string& default_device) {
  const std::size_t at = argument.rfind('@');
  const std::filesystem::path path = argument.substr(0, at);
  const std::string device = at == std::string::npos ? default_device : argument.substr(at + 1);
  if (device.empty())
    return make_error(ErrorKind::kInvalid,
                      fmt::format("{}: on which device was it measured? Write {}@a100 or give "
                                  "--device; `gpoeo twin list` has the names",
                                  argument, argument));
  GPOEO_TRY(const KnownDevice known, known_device(device));
  GPOEO_TRY(response::ResponseTable table, response::read_response_table(path));
  table.source = fmt::format("{} on {}", path.filename().string(), known.device.name);
  model::Families families;
  const std::filesystem::path beside = path.parent_path() / "families.csv";
  std::error_code ignored;
  if (std::filesystem::exists(beside, ignored)) {
    GPOEO_TRY(families, model::read_families(beside));
  }
  return model::add_table(dataset, table, known.device, families);
}

}  // namespace gpoeo::app
