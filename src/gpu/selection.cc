// SPDX-License-Identifier: Apache-2.0
#include "gpu/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "base/text.h"

namespace gpoeo::gpu {
namespace {

std::string lower(std::string_view s) {
  std::string out(s);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

bool is_digits(std::string_view s) {
  return !s.empty() && std::ranges::all_of(s, [](unsigned char c) { return std::isdigit(c) != 0; });
}

// "00000000:65:00.0" and "0000:65:00.0" and "65:00.0" -> "65:00.0" with a non-zero domain before
// it; empty when `s` is no PCI id.
std::string plain_pci_id(std::string_view s) {
  const auto parts = split(s, ':');
  if (parts.size() != 2 && parts.size() != 3) return "";
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::string digits(parts[i]);
    if (i + 1 == parts.size()) std::erase(digits, '.');
    if (digits.empty() ||
        !std::ranges::all_of(digits, [](unsigned char c) { return std::isxdigit(c) != 0; })) {
      return "";
    }
  }
  std::string domain = parts.size() == 3 ? lower(parts[0]) : "";
  domain.erase(0, std::min(domain.find_first_not_of('0'), domain.size()));
  std::string slot = lower(parts.back());
  if (slot.find('.') == std::string::npos) slot += ".0";
  return (domain.empty() ? "" : domain + ":") + lower(parts[parts.size() - 2]) + ":" + slot;
}

std::string known_devices(const std::vector<DeviceIdentity>& devices) {
  std::string text;
  for (const auto& device : devices) {
    text += fmt::format("{}{} {} ({})", text.empty() ? "" : ", ", device.index, device.uuid,
                        device.pci_bus_id);
  }
  return text.empty() ? "there is none" : "there are " + text;
}

Result<unsigned> find_uuid(std::string_view entry, const std::vector<DeviceIdentity>& devices) {
  std::vector<unsigned> found;
  for (const auto& device : devices) {
    if (lower(device.uuid).starts_with(lower(entry))) found.push_back(device.index);
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return make_error(ErrorKind::kNotFound,
                      fmt::format("no GPU '{}': {}", entry, known_devices(devices)));
  }
  return make_error(ErrorKind::kInvalid, fmt::format("'{}' begins the UUID of {} GPUs: {}", entry,
                                                     found.size(), known_devices(devices)));
}

// One entry of any of the three lists.
Result<unsigned> find_device(std::string_view entry, const std::vector<DeviceIdentity>& devices) {
  if (lower(entry).starts_with("mig-")) {
    return make_error(
        ErrorKind::kNotSupported,
        fmt::format("'{}' is a MIG slice: its clocks and power are those of the whole GPU, so "
                    "gpoeo does not control it; use a whole GPU",
                    entry));
  }
  if (lower(entry).starts_with("gpu-")) return find_uuid(entry, devices);
  if (is_digits(entry)) {
    const auto index = parse_int(entry);
    if (index) {
      for (const auto& device : devices) {
        if (device.index == static_cast<unsigned long long>(*index)) return device.index;
      }
    }
    return make_error(ErrorKind::kNotFound,
                      fmt::format("no GPU {}: {}", entry, known_devices(devices)));
  }
  if (const std::string pci = plain_pci_id(entry); !pci.empty()) {
    for (const auto& device : devices) {
      if (plain_pci_id(device.pci_bus_id) == pci) return device.index;
    }
    return make_error(ErrorKind::kNotFound,
                      fmt::format("no GPU at {}: {}", entry, known_devices(devices)));
  }
  return make_error(ErrorKind::kInvalid, fmt::format("'{}' is no index, GPU-uuid or PCI id; {}",
                                                     entry, known_devices(devices)));
}

std::vector<unsigned> all_of(const std::vector<DeviceIdentity>& devices) {
  std::vector<unsigned> all;
  for (const auto& device : devices) all.push_back(device.index);
  return all;
}

// Adds an index once; false when it was there.
bool add_once(std::vector<unsigned>& indices, unsigned index) {
  if (std::ranges::find(indices, index) != indices.end()) return false;
  indices.push_back(index);
  return true;
}

Result<Selection> from_option(const std::string& option,
                              const std::vector<DeviceIdentity>& devices) {
  Selection selection{.indices = {}, .source = "--gpus", .warning = ""};
  if (trim(option) == "all") {
    selection.indices = all_of(devices);
    return selection;
  }
  for (const std::string_view part : split(option, ',')) {
    const std::string_view entry = trim(part);
    if (entry.empty()) {
      return make_error(ErrorKind::kInvalid,
                        fmt::format("--gpus '{}': empty entry; give 0,1 or GPU-uuid or a PCI id or "
                                    "'all'",
                                    option));
    }
    const auto index = find_device(entry, devices);
    if (!index) return with_context("--gpus", index.error());
    add_once(selection.indices, *index);
  }
  return selection;
}

bool one_kind(const std::vector<DeviceIdentity>& devices) {
  std::set<std::string> names;
  for (const auto& device : devices) names.insert(device.name);
  return names.size() <= 1;
}

Result<Selection> from_cuda(const std::string& value, const EnvironmentLookup& environment,
                            const std::vector<DeviceIdentity>& devices) {
  Selection selection{.indices = {}, .source = "CUDA_VISIBLE_DEVICES", .warning = ""};
  bool by_index = false;
  for (const std::string_view part : split(value, ',')) {
    const std::string_view entry = trim(part);
    // A MIG slice is valid for CUDA, so the job would use it: say why we cannot.
    if (lower(entry).starts_with("mig-")) {
      return with_context("CUDA_VISIBLE_DEVICES", find_device(entry, devices).error());
    }
    if (!is_digits(entry) && !lower(entry).starts_with("gpu-")) break;
    const auto index = find_device(entry, devices);
    if (!index) break;  // as CUDA: what comes after is not seen either
    by_index = by_index || is_digits(entry);
    if (!add_once(selection.indices, *index)) {
      // CUDA shows no device at all when one is named twice.
      return make_error(ErrorKind::kInvalid,
                        fmt::format("CUDA_VISIBLE_DEVICES='{}' names GPU {} twice: CUDA would show "
                                    "the job no GPU",
                                    value, *index));
    }
  }
  const auto order = environment("CUDA_DEVICE_ORDER");
  if (by_index && (!order || *order != "PCI_BUS_ID") && !one_kind(devices)) {
    selection.warning =
        "the cards differ and CUDA numbers them fastest first, the driver by PCI bus: the GPU "
        "watched may not be the job's; set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name it by UUID";
  }
  return selection;
}

}  // namespace

Result<Selection> select_gpus(const std::optional<std::string>& gpus_option,
                              const EnvironmentLookup& environment,
                              const std::vector<DeviceIdentity>& devices) {
  if (gpus_option) return from_option(*gpus_option, devices);
  if (const auto visible = environment("CUDA_VISIBLE_DEVICES")) {
    return from_cuda(*visible, environment, devices);
  }
  const auto slurm = environment("SLURM_JOB_GPUS");
  if (slurm && !trim(*slurm).empty()) {
    Selection selection{.indices = {}, .source = "SLURM_JOB_GPUS", .warning = ""};
    for (const std::string_view part : split(*slurm, ',')) {
      const auto index = find_device(trim(part), devices);
      if (!index) return with_context("SLURM_JOB_GPUS", index.error());
      add_once(selection.indices, *index);
    }
    return selection;
  }
  return Selection{.indices = all_of(devices), .source = "all GPUs", .warning = ""};
}

}  // namespace gpoeo::gpu
